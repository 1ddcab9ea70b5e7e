//! Exec and attach over SPDY, client and server of this crate: output, exit codes and terminal sizes in every version.

use spdy::upgrade::{self, UpgradeError};
use spdy_cri::client::{self, Options};
use spdy_cri::{ClientError, Config, ExitCode, RemoteCommand, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::process::{all_versions, start, text};
use crate::support::{PIPES, TERMINAL, attach, dial, exec, fake_runtime, pattern, post, runtime};

fn only(version: RemoteCommand) -> Options {
    let mut options = Options::default();
    options.remote_command = vec![version];
    options
}

#[tokio::test]
async fn a_megabyte_crosses_cat_in_every_version() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let mut process = start(&server, exec(&["cat"], PIPES), only(version))
            .await
            .expect("a process");
        assert_eq!(process.version(), version);
        let input = pattern(1_000_000, 0);
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let feeding = input.clone();
        let feed = tokio::spawn(async move {
            stdin.write_all(&feeding).await.expect("written");
            stdin.shutdown().await.expect("an end");
            stdin
        });
        let mut output = Vec::new();
        let mut stdout = process.stdout.take().expect("the stream was requested");
        stdout.read_to_end(&mut output).await.expect("an end");
        assert!(output == input, "{version:?}: {} bytes", output.len());
        assert_eq!(text(process.stderr.take()).await, "");
        assert!(process.wait().await.expect("a status").is_success());
        drop(feed.await.expect("no panic"));
    }
}

#[tokio::test]
async fn exit_codes_are_json_from_version_4_on() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let mut process = start(&server, exec(&["fail", "7"], PIPES), only(version))
            .await
            .expect("a process");
        assert_eq!(text(process.stderr.take()).await, "failing as asked\n");
        match process.wait().await {
            Ok(code) => assert!(code == ExitCode(7) && version >= RemoteCommand::V4),
            Err(ClientError::Remote { message }) if version < RemoteCommand::V4 => {
                assert_eq!(message, "command terminated with non-zero exit code: 7");
            }
            other => panic!("{version:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_error_of_the_runtime_is_sent_in_every_version() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let process = start(&server, exec(&["dance"], PIPES), only(version))
            .await
            .expect("a process");
        let error = process.wait().await.expect_err("no such command");
        assert!(
            error.to_string().contains("no command \"dance\""),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_executable_that_does_not_exist_is_reported_as_by_containerd() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let process = start(&server, exec(&["start", "lss"], PIPES), only(version))
            .await
            .expect("a process");
        let error = process.wait().await.expect_err("no such executable");
        assert_eq!(
            error.to_string(),
            "Internal error occurred: error executing command in container: \
             exec: \"lss\": executable file not found in $PATH"
        );
    }
}

#[tokio::test]
async fn stdout_and_stderr_are_separate_streams() {
    let server = fake_runtime(Config::default());
    let mut process = start(&server, exec(&["both"], PIPES), Options::default())
        .await
        .expect("a process");
    assert_eq!(
        process.version(),
        RemoteCommand::V4,
        "the kubelet's newest protocol over SPDY"
    );
    let (out, err) = tokio::join!(text(process.stdout.take()), text(process.stderr.take()));
    assert!(
        out.starts_with("out 0\n") && out.ends_with("out 9\n"),
        "{out}"
    );
    assert!(
        err.starts_with("err 0\n") && err.ends_with("err 9\n"),
        "{err}"
    );
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn terminal_sizes_are_sent_from_version_3_on() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let mut process = start(&server, exec(&["size", "2"], TERMINAL), only(version))
            .await
            .expect("a process");
        let Some(mut resizer) = process.resize.take() else {
            assert!(version < RemoteCommand::V3);
            assert!(
                process.wait().await.is_err(),
                "the command needs a terminal size"
            );
            continue;
        };
        for (width, height) in [(80, 24), (132, 43)] {
            let size = TerminalSize { width, height };
            resizer.resize(size).await.expect("sent");
        }
        assert_eq!(text(process.stdout.take()).await, "80x24\n132x43\n");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

#[tokio::test]
async fn attach_joins_a_container_and_reports_errors() {
    let server = fake_runtime(Config::default());
    for (container, works) in [("c1", true), ("c2", false)] {
        let mut request = attach();
        request.container = container.to_owned();
        let url = server.attach_url(request).expect("a URL");
        let io = dial(&server);
        let options = Options::default();
        let mut process = client::attach(io, &post(&url), PIPES, options, runtime())
            .await
            .expect("a process");
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let _ = stdin.write_all(b"hello").await;
        drop(stdin);
        let stdout = text(process.stdout.take()).await;
        let status = process.wait().await;
        if works {
            assert_eq!(
                (stdout.as_str(), status.expect("a status")),
                ("hello", ExitCode::SUCCESS)
            );
        } else {
            let error = status.expect_err("no container");
            assert!(error.to_string().contains("no container \"c2\""), "{error}");
        }
    }
}

#[tokio::test]
async fn a_client_without_a_common_version_gets_the_list() {
    let server = fake_runtime(Config::default());
    let result = start(&server, exec(&["cat"], PIPES), only(RemoteCommand::V5)).await;
    match result {
        Err(ClientError::Upgrade(UpgradeError::Refused {
            status, headers, ..
        })) => {
            assert_eq!(status, 403);
            let accepted = headers.get_all(upgrade::ACCEPTED_STREAM_PROTOCOL_VERSIONS);
            let accepted: Vec<_> = accepted.iter().collect();
            assert_eq!(
                accepted,
                [
                    "v4.channel.k8s.io",
                    "v3.channel.k8s.io",
                    "v2.channel.k8s.io",
                    "channel.k8s.io"
                ]
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn dropping_stdin_resets_only_the_stdin_stream() {
    let server = fake_runtime(Config::default());
    let mut process = start(&server, exec(&["deaf"], TERMINAL), Options::default())
        .await
        .expect("a process");
    // More than a session holds: were it not dropped, the size behind it would never be read.
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let error = stdin
        .write_all(&pattern(8_000_000, 0))
        .await
        .expect_err("no reader");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut resizer = process.resize.take().expect("a terminal");
    resizer
        .resize(TerminalSize {
            width: 1,
            height: 1,
        })
        .await
        .expect("sent");
    assert_eq!(text(process.stdout.take()).await, "I heard the bell\n");
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn a_command_may_end_before_its_stdin() {
    let server = fake_runtime(Config::default());
    let mut process = start(
        &server,
        exec(&["early", "100000"], PIPES),
        Options::default(),
    )
    .await
    .expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let feed = tokio::spawn(async move { stdin.write_all(&pattern(20_000_000, 0)).await });
    let mut output = Vec::new();
    process
        .stdout
        .take()
        .expect("the stream was requested")
        .read_to_end(&mut output)
        .await
        .expect("an end");
    assert_eq!(output, pattern(100_000, 0));
    assert!(process.wait().await.expect("a status").is_success());
    assert!(
        feed.await.expect("no panic").is_err(),
        "writing fails after the command ended"
    );
}

#[tokio::test]
async fn a_slow_reader_gets_all_output_after_the_command_ended() {
    let server = fake_runtime(Config::default());
    let mut process = start(
        &server,
        exec(&["bytes", "3000000"], PIPES),
        Options::default(),
    )
    .await
    .expect("a process");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    let mut output = Vec::new();
    while stdout.read_buf(&mut output).await.expect("bytes") > 0 {
        tokio::task::yield_now().await;
    }
    assert!(output == pattern(3_000_000, 0), "{} bytes", output.len());
    assert!(process.wait().await.expect("a status").is_success());
}
