//! The cluster: creates pods, and finds their processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{sleep, timeout};

/// The pod for exec and port-forward.
pub(crate) const SHELL: &str = "shell";
/// Longest time until a pod runs, and until processes end.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two looks at a pod, or at the processes.
const POLL: Duration = Duration::from_millis(50);

/// The cluster of `scripts/kubernetes`, with one pod that runs.
pub(crate) struct Cluster {
    pub(crate) pods: Api<Pod>,
    /// The folder of the working directories of pods.
    folder: PathBuf,
}

impl Cluster {
    pub(crate) async fn connect(folder: PathBuf) -> anyhow::Result<Self> {
        let client = Client::try_default().await.context("KUBECONFIG")?;
        let cluster = Self {
            pods: Api::default_namespaced(client),
            folder,
        };
        cluster.start_pod(SHELL, &["sleep", "infinity"]).await?;
        Ok(cluster)
    }

    /// Starts a pod on the only node, and waits until it runs. Its stdin ends with the first client that attaches.
    pub(crate) async fn start_pod(&self, name: &str, command: &[&str]) -> anyhow::Result<()> {
        let pod = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "nodeName": "local",
                "containers": [{
                    "name": "main", "image": "none", "command": command, "stdin": true, "stdinOnce": true,
                }],
            },
        }))?;
        self.pods.create(&PostParams::default(), &pod).await?;
        let running = async {
            loop {
                let status = self.pods.get(name).await?.status.unwrap_or_default();
                if status.phase.as_deref() == Some("Running") {
                    return anyhow::Ok(());
                }
                sleep(POLL).await;
            }
        };
        timeout(TIMEOUT, running)
            .await
            .with_context(|| format!("{name} does not run"))?
    }

    /// The working directory of a pod.
    pub(crate) fn pod_folder(&self, pod: &str) -> PathBuf {
        self.folder.join("default").join(pod)
    }

    /// Waits until `count` processes of the pod run.
    pub(crate) async fn wait_for_processes(&self, pod: &str, count: usize) -> anyhow::Result<()> {
        let folder = self.pod_folder(pod);
        let counted = async {
            while processes(&folder) != count {
                sleep(POLL).await;
            }
        };
        let waited = timeout(TIMEOUT, counted).await;
        waited.with_context(|| {
            format!(
                "{} processes of {pod}, expected {count}",
                processes(&folder)
            )
        })
    }
}

/// The processes whose working directory is `folder`. Zombies have none.
pub(crate) fn processes(folder: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").expect("Linux");
    let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("cwd")).ok());
    links.filter(|link| link == folder).count()
}
