//! Runs the commands of the tutorial, and compares their output with it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use spdy_testkit::wait::output_within;

const TUTORIAL: &str = include_str!("../../../../docs/tutorials/stream-exec-from-a-runtime.md");

/// Where the tutorial has its server listen; here the system chooses.
const ADDRESS: &str = "127.0.0.1:10350";

/// How long all of it may take; the examples may have to be built first.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs the examples as they were built beside this test, as `cargo run` would, and without waiting for its
/// lock; `ALONE` in the shell's place, so that its number is theirs. If they were not built, it runs `cargo
/// run`.
const CARGO: &str = r#"
cargo() {
    while [ "$1" != --example ]; do shift; done
    name=$2
    shift 3
    [ -z "$ALONE" ] || exec "$EXAMPLES/$name" "$@"
    "$EXAMPLES/$name" "$@"
}
"#;

/// The inside of the tutorial's first block of `kind`.
fn block(kind: &str) -> &'static str {
    let begin = format!("```{kind}\n");
    let (_, rest) = TUTORIAL.split_once(&begin).expect("a block of this kind");
    rest.split_once("```").expect("an end").0
}

/// A shell that runs `script`, with `cargo` as above.
fn shell(script: &str) -> Command {
    let test_binary = std::env::current_exe().expect("this test is a file");
    let folder = test_binary.parent().and_then(|deps| deps.parent());
    let examples: PathBuf = folder.expect("target/PROFILE/deps").join("examples");
    let are_built = ["cri-exec-server", "exec-client"].map(|name| examples.join(name).is_file());
    let cargo = if are_built == [true; 2] { CARGO } else { "" };
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{cargo}{script}")]);
    shell.env("EXAMPLES", examples);
    shell
}

/// The server of the tutorial, and where it listens.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Self {
        let line = block("sh").trim().replace(ADDRESS, "127.0.0.1:0");
        // Its stdin is what it lives by: the pipe ends with this test, however that ends.
        let script =
            format!("ALONE=1\n{line} & server=$!\nread gone\nkill $server\nwait $server\n");
        let mut child = shell(&script)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stderr_lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let address = stderr_lines.find_map(|line| {
            let line = line.expect("text");
            Some(line.strip_prefix("listening on http://")?.to_owned())
        });
        // What it logs later must have somewhere to go.
        std::thread::spawn(move || stderr_lines.for_each(drop));
        Self {
            child,
            address: address.expect("a server that listens"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn the_commands_of_the_tutorial_work() {
    let server = Server::start();
    let (mut script, mut promised) = ("exec 2>&1\n".to_owned(), String::new());
    for line in block("console").lines() {
        let to = match line.strip_prefix("$ ") {
            Some(command) => {
                script.push_str(&command.replace(ADDRESS, &server.address));
                &mut script
            }
            None => {
                promised.push_str(line);
                &mut promised
            }
        };
        to.push('\n');
    }
    let mut command = shell(&script);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = output_within(LONGEST, command.spawn().expect("a shell"));
    // A terminal ends its lines with CR LF.
    let stdout = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    assert_eq!(stdout, promised, "of\n{script}");
    assert!(promised.contains("\n7\n"), "the output has an exit code");
}
