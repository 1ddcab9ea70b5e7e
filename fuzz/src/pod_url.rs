//! Properties of the URLs of exec, attach and port-forward (`spdy-cri/src/pod_request.rs`).
//!
//! A URL that is parsed is formatted to one with the same meaning, for the API server and for the kubelet.

use http::Uri;
use spdy_cri::PodRequest;

/// Parses the input as a URL of each server.
pub fn check(input: &[u8]) {
    let Ok(uri) = Uri::try_from(input) else {
        return;
    };
    let again = |url: String| -> Uri { url.parse().expect("a formatted URL is valid") };
    if let Ok(request) = PodRequest::parse_api_server(&uri) {
        let url = again(request.api_server_url().expect("its names are valid"));
        assert_eq!(PodRequest::parse_api_server(&url), Ok(request));
    }
    if let Ok(request) = PodRequest::parse_kubelet(&uri) {
        let url = again(request.kubelet_url().expect("exec has a container"));
        assert_eq!(PodRequest::parse_kubelet(&url), Ok(request));
    }
}
