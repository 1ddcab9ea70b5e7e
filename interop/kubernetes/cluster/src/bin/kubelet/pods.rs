//! The pods of the node: starts and stops their containers, and reports their status.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::{Container as ContainerSpec, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use crate::node;
use crate::process::ProcessGroup;

/// The running containers, by ID. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Pods {
    folder: PathBuf,
    containers: Arc<Mutex<HashMap<String, Arc<Container>>>>,
}

/// A running container.
pub(crate) struct Container {
    /// The working directory of its processes.
    pub(crate) folder: PathBuf,
    /// Locked by the client that is attached.
    pub(crate) stdio: tokio::sync::Mutex<Stdios>,
    /// Whether stdin ends with the first client that attached (`stdinOnce`).
    pub(crate) stdin_once: bool,
}

/// Standard input and output of a container's process. What it prints waits in the pipe until a client attaches.
pub(crate) struct Stdios {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

/// The ID of a container, or with an empty `container` the prefix of all IDs of the pod.
pub(crate) fn id(namespace: &str, pod: &str, container: &str) -> String {
    format!("{namespace}/{pod}/{container}")
}

impl Pods {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            containers: Arc::default(),
        }
    }

    /// The container with this ID.
    pub(crate) fn container(&self, id: &str) -> Option<Arc<Container>> {
        self.containers.lock().expect("no panic").get(id).cloned()
    }

    /// True if a container of the pod runs.
    pub(crate) fn is_running(&self, namespace: &str, pod: &str) -> bool {
        let prefix = id(namespace, pod, "");
        let containers = self.containers.lock().expect("no panic");
        containers.keys().any(|id| id.starts_with(&prefix))
    }

    /// Runs the pods of this node until the API server fails.
    pub(crate) async fn watch(&self, client: &Client) -> anyhow::Result<()> {
        let all: Api<Pod> = Api::all(client.clone());
        let ours = format!("spec.nodeName={}", node::NAME);
        let mut running: HashMap<String, JoinSet<()>> = HashMap::new();
        loop {
            let list = all.list(&ListParams::default().fields(&ours)).await?;
            let uids: Vec<_> = list.iter().filter_map(ResourceExt::uid).collect();
            running.retain(|uid, _| uids.contains(uid));
            let version = list.metadata.resource_version.unwrap_or_default();
            for pod in list.items {
                self.update(client, pod, &mut running).await?;
            }
            let params = WatchParams::default().fields(&ours);
            let mut events = std::pin::pin!(all.watch(&params, &version).await?);
            while let Some(event) = events.try_next().await? {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        self.update(client, pod, &mut running).await?;
                    }
                    WatchEvent::Deleted(pod) => {
                        running.remove(&pod.uid().context("a pod without UID")?);
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break, // the version is too old: list again
                }
            }
        }
    }

    /// Starts a pod that is new, and stops one that is deleted.
    async fn update(
        &self,
        client: &Client,
        pod: Pod,
        running: &mut HashMap<String, JoinSet<()>>,
    ) -> anyhow::Result<()> {
        let uid = pod.uid().context("a pod without UID")?;
        if pod.metadata.deletion_timestamp.is_some() {
            running.remove(&uid);
            let now = DeleteParams::default().grace_period(0);
            let pods = namespaced(client, &pod);
            let _ = pods.delete(&pod.name_any(), &now).await; // it may be deleted already
        } else if let Entry::Vacant(entry) = running.entry(uid) {
            entry.insert(self.start(client, &pod).await?);
        }
        Ok(())
    }

    /// Starts the containers of a pod. They end when the result is dropped.
    async fn start(&self, client: &Client, pod: &Pod) -> anyhow::Result<JoinSet<()>> {
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let folder = self.folder.join(&namespace).join(&name);
        tokio::fs::create_dir_all(&folder).await?;
        let mut containers = JoinSet::new();
        let mut statuses = Vec::new();
        for spec in pod.spec.iter().flat_map(|spec| &spec.containers) {
            let id = id(&namespace, &name, &spec.name);
            let run = self.run(id, folder.clone(), spec)?;
            let (pods, name) = (namespaced(client, pod), name.clone());
            containers.spawn(async move {
                let phase = if run.await { "Succeeded" } else { "Failed" };
                let _ = set_status(&pods, &name, json!({ "phase": phase })).await;
            });
            statuses.push(json!({
                "name": spec.name, "image": spec.image, "imageID": "", "ready": true, "restartCount": 0,
                "state": { "running": {} },
            }));
        }
        let status = json!({
            "phase": "Running", "podIP": "127.0.0.1", "containerStatuses": statuses,
            "conditions": [{ "type": "Ready", "status": "True" }],
        });
        set_status(&namespaced(client, pod), &name, status).await?;
        Ok(containers)
    }

    /// Starts a container. The future completes at the end of its process, with true if that succeeded, and ends the process when it
    /// is dropped.
    fn run(
        &self,
        id: String,
        folder: PathBuf,
        spec: &ContainerSpec,
    ) -> anyhow::Result<impl Future<Output = bool> + use<>> {
        let words = [&spec.command, &spec.args];
        let mut words = words.into_iter().flatten().flatten();
        let program = words.next().context("a container needs a command")?;
        let mut command = Command::new(program);
        let stdin = match spec.stdin {
            Some(true) => Stdio::piped(),
            _ => Stdio::null(),
        };
        command
            .args(words)
            .current_dir(&folder)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut group = ProcessGroup::spawn(program, || command.spawn())?;
        let leader = group.leader();
        let stdio = Stdios {
            stdin: leader.stdin.take(),
            stdout: leader.stdout.take(),
            stderr: leader.stderr.take(),
        };
        let container = Arc::new(Container {
            folder,
            stdio: stdio.into(),
            stdin_once: spec.stdin_once.unwrap_or(false),
        });
        let mut all = self.containers.lock().expect("no panic");
        all.insert(id.clone(), container);
        let listed = Listed(self.clone(), id);
        Ok(async move {
            let _listed = listed;
            let ended = group.leader().wait().await;
            ended.is_ok_and(|status| status.success())
        })
    }
}

/// Removes a container from the list when it ends.
struct Listed(Pods, String);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.containers.lock().expect("no panic").remove(&self.1);
    }
}

fn namespaced(client: &Client, pod: &Pod) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default())
}

async fn set_status(pods: &Api<Pod>, name: &str, status: serde_json::Value) -> kube::Result<()> {
    let status = Patch::Merge(json!({ "status": status }));
    pods.patch_status(name, &PatchParams::default(), &status)
        .await
        .map(drop)
}
