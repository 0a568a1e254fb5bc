//! The private etcd, in the laboratory's own harness.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::ExitCode,
    time::Duration,
};

use lab::{
    Error,
    etcd::{Etcd, EtcdOptions},
    trials::Suite,
};

fn main() -> ExitCode {
    Suite::new()
        .plain("one member answers, and is gone when dropped", one_member)
        .plain("a killed member comes again with what it stored", a_killed_member_comes_again)
        .plain("three members choose another leader", three_members)
        .plain("a minority answers nothing", a_minority_answers_nothing)
        .plain("a frozen member hangs, and goes on", a_frozen_member_hangs)
        .plain("a restored cluster keeps its id, or not", a_restored_cluster)
        .plain("history is thrown away", history_is_thrown_away)
        .plain("nobody is let in without a password", nobody_without_a_password)
        .plain("with TLS, nobody without a certificate is let in", nobody_without_a_certificate)
        .run()
}

type Outcome = Result<(), Error>;

fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn one_member() -> Outcome {
    let etcd = Etcd::start()?;
    etcd.ctl(&["put", "a", "1"])?;
    assert_eq!(etcd.ctl(&["get", "a", "--print-value-only"])?, "1");
    assert!(etcd.metrics(0)?.contains("etcd_server_has_leader 1"));
    assert!(etcd.ctl(&["get"]).is_err(), "an error of etcdctl is an error");
    let (pids, folder) = (etcd.pids(), etcd.folder().to_owned());
    assert!(pids.len() == 1 && exists(pids[0]) && folder.is_dir());
    drop(etcd);
    assert!(!exists(pids[0]) && !folder.exists());
    Ok(())
}

fn a_killed_member_comes_again() -> Outcome {
    let mut etcd = Etcd::start()?;
    etcd.ctl(&["put", "a", "1"])?;
    let before = etcd.endpoints();
    etcd.kill(0)?;
    assert_eq!(etcd.pids(), []);
    assert!(etcd.freeze(0).is_err(), "it is not there");
    etcd.start_again(0)?;
    etcd.terminate(0)?;
    etcd.start_again(0)?;
    assert_eq!(etcd.endpoints(), before);
    assert_eq!(etcd.ctl(&["get", "a", "--print-value-only"])?, "1");
    Ok(())
}

fn three_members() -> Outcome {
    let mut etcd = Etcd::start_three()?;
    let first = etcd.leader()?;
    assert!(etcd.metrics(first)?.contains("etcd_server_is_leader 1"), "it says so itself");
    etcd.kill(first)?;
    let second = etcd.leader()?;
    assert_ne!(first, second);
    assert!(etcd.metrics(second)?.contains("etcd_server_is_leader 1"), "it says so itself");
    etcd.ctl(&["put", "a", "1"])?;
    etcd.start_again(first)?;
    assert_eq!(etcd.pids().len(), 3);
    Ok(())
}

fn a_minority_answers_nothing() -> Outcome {
    let mut etcd = Etcd::start_three()?;
    etcd.kill(0)?;
    etcd.kill(1)?;
    assert!(etcd.ctl(&["put", "a", "1", "--command-timeout=1s"]).is_err());
    etcd.start_all()?;
    etcd.ctl(&["put", "a", "1"])?;
    Ok(())
}

fn a_frozen_member_hangs() -> Outcome {
    let mut etcd = Etcd::start()?;
    etcd.freeze(0)?;
    let mut client = TcpStream::connect(&etcd.endpoints()[0]).expect("the system accepts for it");
    client.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit");
    client.write_all(b"GET /health HTTP/1.0\r\n\r\n").expect("it is sent");
    assert!(client.read(&mut [0]).is_err(), "it answered");
    etcd.wake(0)?;
    etcd.wait_ready(0)
}

/// `"cluster_id":123` of an answer.
fn cluster_id(etcd: &Etcd) -> Result<String, Error> {
    let said = etcd.ctl(&["get", "a", "-w", "json"])?;
    let id = said.split_once("\"cluster_id\":").expect("a header").1.split_once(',').expect("more fields").0;
    Ok(id.to_owned())
}

fn a_restored_cluster() -> Outcome {
    let mut etcd = Etcd::start()?;
    etcd.ctl(&["put", "a", "1"])?;
    let (id, revision) = (cluster_id(&etcd)?, etcd.revision()?);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("snapshot");
    etcd.snapshot(&file)?;
    assert!(fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    for (new_token, what) in [(false, "same"), (true, "new")] {
        etcd.ctl(&["put", "a", "2"])?;
        assert!(etcd.revision()? > revision);
        etcd.restore(&file, new_token)?;
        assert_eq!(etcd.revision()?, revision, "{what}: the revision went back");
        assert_eq!(etcd.ctl(&["get", "a", "--print-value-only"])?, "1", "{what}");
        assert_eq!(cluster_id(&etcd)? == id, !new_token, "{what}");
    }
    Ok(())
}

fn history_is_thrown_away() -> Outcome {
    let etcd = Etcd::start()?;
    etcd.ctl(&["put", "a", "1"])?;
    let old = etcd.revision()?.to_string();
    etcd.ctl(&["put", "a", "2"])?;
    assert_eq!(etcd.ctl(&["get", "a", "--print-value-only", "--rev", &old])?, "1");
    etcd.compact()?;
    let error = etcd.ctl(&["get", "a", "--rev", &old]).expect_err("it is gone");
    assert!(error.to_string().contains("compacted"), "{error}");
    Ok(())
}

fn nobody_without_a_password() -> Outcome {
    let mut etcd = Etcd::start_with(EtcdOptions { auth_token_ttl_s: Some(1), ..EtcdOptions::default() })?;
    etcd.enable_auth("secret")?;
    etcd.ctl(&["put", "a", "1"])?;
    let stranger = etcd.etcdctl()?.env_remove("ETCDCTL_USER").args(["get", "a"]).output().expect("it starts");
    assert!(!stranger.status.success());
    Ok(())
}

fn nobody_without_a_certificate() -> Outcome {
    let etcd = Etcd::start_with(EtcdOptions { tls: true, ..EtcdOptions::default() })?;
    etcd.ctl(&["put", "a", "1"])?;
    for missing in ["ETCDCTL_CERT", "ETCDCTL_CACERT"] {
        let mut command = etcd.etcdctl()?;
        command.env_remove(missing);
        if missing == "ETCDCTL_CERT" {
            command.env_remove("ETCDCTL_KEY");
        }
        let stranger = command.args(["get", "a", "--command-timeout=1s", "--dial-timeout=1s"]).output().expect("it starts");
        assert!(!stranger.status.success(), "let in without {missing}");
    }
    Ok(())
}
