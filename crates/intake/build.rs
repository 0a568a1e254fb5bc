//! Lists the profiles of `config/profiles`, each to be embedded: code that names them would name providers.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "../../config/profiles";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={FOLDER}");
    let mut files = Vec::new();
    for entry in fs::read_dir(FOLDER)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(fs::canonicalize(path)?);
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.file_stem().ok_or("a profile without a name")?.to_string_lossy();
        writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string())?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("built_in_profiles.rs"), list)?;
    Ok(())
}
