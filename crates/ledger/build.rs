//! `sqlx::migrate!` embeds the folders at compile time; Cargo must know when a file is added to one.
fn main() {
    println!("cargo:rerun-if-changed=../../migrations/postgres");
    println!("cargo:rerun-if-changed=../../migrations/sqlite");
}
