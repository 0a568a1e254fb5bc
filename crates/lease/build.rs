//! `sqlx::migrate!` embeds the folder at compile time; Cargo must know when a file is added to it.
fn main() {
    println!("cargo:rerun-if-changed=../../migrations/sqlite_lease");
}
