//! Options of `spdy serve` about pushes and hints, and the pusher that they make.

use std::sync::Arc;

use spdy::server::PushForm;
use spdy_page::replica::Replica;
use spdy_server::page_resources::PageResources;
use spdy_server::push_plan::{Budget, Hints, Sources};
use spdy_server::session_history::DigestKey;
use spdy_server::site::Site;
use spdy_server::site_pusher::{PushConfig, SitePusher};
use spdy_service::random;

use crate::outcome::Usage;

/// Pushes and hints that are sent with a page.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Push")]
pub(crate) struct PushArgs {
    /// Push a page's resources over SPDY and HTTP/2, from these sources: link, graph, learned, or none.
    ///
    /// `link` reads the headers Link: rel=preload and X-Associated-Content of the page. `graph` uses the recording, or
    /// the text of the files. `learned` uses the resources of the site that clients of several networks request after
    /// the page. Clients that reject pushes get none.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SOURCES",
        default_value = "link",
        hide_possible_values = true
    )]
    push: Vec<PushSource>,

    /// Send hints by Link: rel=subresource: off, rest or instead.
    ///
    /// `rest` hints the resources that cannot be pushed to the client. `instead` sends hints and no pushes.
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "rest",
        hide_possible_values = true
    )]
    hint: HintMode,

    /// Form of SPDY pushes, because clients differ: one-block, version-twice or two-blocks.
    ///
    /// No known client closes its session on `one-block`. Netty needs `version-twice`. node-spdy closes its session on
    /// `two-blocks`.
    #[arg(
        long,
        value_name = "FORM",
        default_value = "one-block",
        hide_possible_values = true
    )]
    push_form: PushFormArg,

    /// Largest number of pushes with one page
    #[arg(long, value_name = "N", default_value_t = Budget::default().streams)]
    push_streams: usize,

    /// Largest number of bytes in the pushes with one page
    #[arg(long, value_name = "BYTES", default_value_t = Budget::default().bytes)]
    push_bytes: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
#[value(rename_all = "lower")]
enum PushSource {
    None,
    Link,
    Graph,
    Learned,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum HintMode {
    Off,
    Rest,
    Instead,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PushFormArg {
    TwoBlocks,
    VersionTwice,
    OneBlock,
}

impl PushArgs {
    /// The form of pushes.
    pub(crate) fn form(&self) -> PushForm {
        match self.push_form {
            PushFormArg::TwoBlocks => PushForm::TwoBlocks,
            PushFormArg::VersionTwice => PushForm::VersionTwice,
            PushFormArg::OneBlock => PushForm::OneBlock,
        }
    }

    /// The pushes and hints for the pages of `site`, or of `replica`.
    pub(crate) fn pushing(
        &self,
        site: &Site,
        replica: Option<&Replica>,
    ) -> anyhow::Result<Option<Arc<SitePusher>>> {
        let is_enabled = |source| self.push.contains(&source);
        if is_enabled(PushSource::None) {
            if self.push.len() > 1 {
                return Err(
                    Usage("--push none cannot be combined with other sources".to_owned()).into(),
                );
            }
            return Ok(None);
        }
        let sources = Sources {
            link: is_enabled(PushSource::Link),
            graph: is_enabled(PushSource::Graph),
            learned: is_enabled(PushSource::Learned),
        };
        let needs = match (replica, site.directory()) {
            _ if !sources.graph => PageResources::default(),
            (Some(replica), _) => PageResources::of_replica(replica),
            (None, Some(directory)) => PageResources::of_directory(directory),
            (None, None) => PageResources::default(),
        };
        let config = PushConfig {
            sources,
            hints: match self.hint {
                HintMode::Off => Hints::Off,
                HintMode::Rest => Hints::Remaining,
                HintMode::Instead => Hints::Instead,
            },
            budget: Budget {
                streams: self.push_streams,
                bytes: self.push_bytes,
                ..Budget::default()
            },
            digest_key: DigestKey(random::bytes()?),
            ..PushConfig::default()
        };
        Ok(SitePusher::new(config, needs, site).map(Arc::new))
    }
}
