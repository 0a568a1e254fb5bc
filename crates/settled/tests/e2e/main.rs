//! The program as its users have it: real processes, real servers, real files. One topic a file; `world.rs` is the fixture.

mod advice;
mod broken_input;
mod chaos;
mod corrections;
mod etcd;
mod fairness;
mod formats;
mod kills;
mod locks;
mod operators;
mod outages;
mod profile_command;
mod real_files;
mod redis;
mod roles;
mod serve;
mod sources;
mod start;
mod steps;
mod world;

use lab::trials::Suite;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    suite = advice::add(suite);
    suite = broken_input::add(suite);
    suite = chaos::add(suite);
    suite = corrections::add(suite);
    suite = etcd::add(suite);
    suite = fairness::add(suite);
    suite = formats::add(suite);
    suite = kills::add(suite);
    suite = operators::add(suite);
    suite = outages::add(suite);
    suite = profile_command::add(suite);
    suite = real_files::add(suite);
    suite = redis::add(suite);
    suite = roles::add(suite);
    suite = serve::add(suite);
    suite = sources::add(suite);
    suite = start::add(suite);
    suite = steps::add(suite);
    suite = locks::add(suite);
    suite.run()
}
