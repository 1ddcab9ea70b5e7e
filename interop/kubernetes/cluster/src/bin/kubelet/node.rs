//! The node that the API server sees, and how it reaches this kubelet.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// The node's name.
pub(crate) const NAME: &str = "local";

/// Registers the node, whose streaming server listens on `port` of localhost.
pub(crate) async fn register(client: &Client, port: u16) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut node = Node::default();
    node.metadata.name = Some(NAME.to_owned());
    nodes.create(&PostParams::default(), &node).await?;
    let status = json!({ "status": {
        "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
    }});
    let (params, status) = (PatchParams::default(), Patch::Merge(status));
    nodes.patch_status(NAME, &params, &status).await?;
    Ok(())
}
