//! Chromium's schedulers, as a machine: the renderer's for each document, followed by the network service's for the page.
//!
//! ```text
//!  enqueue ─► renderer: until the parser reaches the body    ─► network service                     ─► poll
//!           High     at once                                     High    at once
//!           Medium   while fewer than 2 of these run             others  while fewer than 10 of these are in flight;
//!           Low      while fewer than 2 of any kind run                  on a slow network 8, less 3 for each High one;
//!                                                                         and while fewer than 6 requests to the same host are in flight
//! ```
//!
//! - **Renderer** (`ResourceLoadScheduler` of Blink). Medium requests may also run where Low ones may. Once the parser has reached
//!   the body, which needs every script of the head to have run, all requests are released. Navigations are not scheduled, and a
//!   followed redirect continues as the original request.
//! - **Raised requests**: an image in the window becomes High when layout finds it there, in both schedulers.
//! - **Network service** (`ResourceScheduler`). Requests to a host with priorities (HTTP/2 or HTTP/3) are counted only on a slow
//!   network, and before the host's first response, when the browser does not know its protocol. The limit of a host is only for
//!   hosts without known priorities, and a request that waits for it does not block those to other hosts. All requests to a host
//!   count for its limit, except for navigations. A network is slow if every round trip took at least [`SLOW`]. TCP's handshake
//!   shows that when the page's document arrives. QUIC's handshakes are not measured, so one response is not enough.
//!
//! Chromium 49 has no scheduler in the renderer, and other rules for the page. Only requests of low urgency to a host without
//! priorities are delayable: 10 in flight, and none if 6 requests to the same host are. While the document is not complete or has no
//! body, or while a style sheet loads that was requested before the body, one is in flight, and none beside two requests of others.
//!
//! Browsers learn the protocol of a host from its handshake, one round trip before its first response.
//!
//! The client limits HTTP/1.1 to six connections per host.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::options::Scheduler;
use crate::page_load::{Urgency, UrgencyPlan};

/// Running requests of low urgency while the head is parsed, and as many more of Medium urgency.
const MAX_TIGHT_MODE: usize = 2;
/// Delayable requests in flight.
const MAX_DELAYABLE: usize = 10;
/// Requests to one host in flight, at which further delayable ones to it wait.
const MAX_PER_HOST: usize = 6;
/// Delayable requests in flight on a slow network.
const MAX_DELAYABLE_SLOW: usize = 8;
/// Delayable requests for which an urgent one counts there.
const WEIGHT_WHEN_SLOW: usize = 3;
/// Round trip from which Chromium classifies a network as 3G.
pub(crate) const SLOW: Duration = Duration::from_millis(272);

/// The most urgent first, in the order of arrival.
type Queue = BTreeSet<Place>;
/// Urgency, number of arrival, and node.
type Place = (Reverse<Urgency>, u64, usize);

/// Requests for which the network service has the same rules at any time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Group {
    host: usize,
    partition: usize,
    is_multiplexed: bool,
    urgency: Urgency,
}

/// Measurements that are needed before a network counts as slow: TCP's handshake and a response, or two responses.
const MIN_SAMPLES: usize = 2;

/// The requests of one document.
#[derive(Debug)]
struct DocumentQueue {
    /// Its parser has not reached the body.
    is_tight: bool,
    waiting: Queue,
    running: usize,
    running_medium: usize,
}

/// A request that the renderer has released.
#[derive(Clone, Copy, Debug)]
struct ActiveRequest {
    document: usize,
    /// Its class, if the network service has released it too.
    counted: Option<RequestClass>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RequestClass {
    /// A delayable request.
    Delayable,
    /// A request that is not delayable.
    Other,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Throttle {
    scheduler: Scheduler,
    plan: UrgencyPlan,
    /// Nodes for which Chromium 49 limits delayable requests: the first document, and style sheets of heads.
    layout_blocking: BTreeSet<usize>,
    /// Partitions of hosts that have responded.
    known_hosts: BTreeSet<usize>,
    frames: BTreeMap<usize, DocumentQueue>,
    running: BTreeMap<usize, ActiveRequest>,
    /// The number of arrival, and the document, of each request that has not ended.
    arrivals: BTreeMap<usize, (u64, usize)>,
    /// Requests that wait for the network service.
    waiting: BTreeMap<Group, Queue>,
    /// Requests in flight, by host.
    in_flight: BTreeMap<usize, usize>,
    delayable: usize,
    others: usize,
    /// The shortest round trip, and the number of reports.
    shortest: Duration,
    samples: usize,
    sequence: u64,
    ready: VecDeque<usize>,
}

impl Throttle {
    pub(crate) fn new(scheduler: Scheduler, plan: UrgencyPlan) -> Self {
        let frame = |&document: &usize| {
            let frame = DocumentQueue {
                is_tight: true,
                waiting: Queue::new(),
                running: 0,
                running_medium: 0,
            };
            (document, frame)
        };
        Self {
            scheduler,
            known_hosts: plan.known_hosts.clone(),
            layout_blocking: plan.body_at.keys().copied().take(1).collect(),
            frames: plan.body_at.keys().map(frame).collect(),
            plan,
            running: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            waiting: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            delayable: 0,
            others: 0,
            shortest: Duration::MAX,
            samples: 0,
            sequence: 0,
            ready: VecDeque::new(),
        }
    }

    /// The plan of the page.
    pub(crate) fn plan(&self) -> &UrgencyPlan {
        &self.plan
    }

    /// Documents whose parsers have not reached their bodies.
    pub(crate) fn tight_documents(&self) -> Vec<usize> {
        let tight = self.frames.iter().filter(|(_, frame)| frame.is_tight);
        tight.map(|(&document, _)| document).collect()
    }

    /// Adds `node` of `document`; `goes_on` if it continues a released request after a redirect.
    ///
    /// # Panics
    ///
    /// If `document` is not in the plan.
    pub(crate) fn enqueue(&mut self, node: usize, document: usize, goes_on: bool) {
        self.sequence += 1;
        let place = (Reverse(self.plan.urgency[node]), self.sequence, node);
        self.arrivals.insert(node, (self.sequence, document));
        let frame = self.frames.get_mut(&document);
        let frame = frame.unwrap_or_else(|| panic!("node {document} is not a document"));
        if frame.is_tight && self.plan.urgency[node] == Urgency::High {
            self.layout_blocking.insert(node);
        }
        if goes_on {
            self.admit(node, document);
            self.start(node);
        } else {
            frame.waiting.insert(place);
        }
        self.run();
    }

    /// Ends the request for `node`. Unknown nodes are ignored.
    ///
    /// # Panics
    ///
    /// If `node` is still delayed.
    pub(crate) fn done(&mut self, node: usize) {
        if self.layout_blocking.remove(&node) {
            self.run();
        }
        let Some(ActiveRequest { document, counted }) = self.running.remove(&node) else {
            return;
        };
        self.arrivals.remove(&node);
        let urgency = self.plan.urgency[node];
        let frame = self.frames.get_mut(&document).expect("it ran in one");
        frame.running -= 1;
        frame.running_medium -= usize::from(urgency == Urgency::Medium);
        match counted {
            Some(RequestClass::Delayable) => self.delayable -= 1,
            Some(RequestClass::Other) => self.others -= 1,
            None => panic!("node {node} is done, but was not requested"),
        }
        *self.in_flight.entry(self.plan.host[node]).or_default() -= 1;
        self.run();
    }

    /// The urgency of `node` becomes High, unless its request has ended.
    pub(crate) fn raise(&mut self, node: usize) {
        let Some(&(sequence, document)) = self.arrivals.get(&node) else {
            return;
        };
        let before = std::mem::replace(&mut self.plan.urgency[node], Urgency::High);
        if before == Urgency::High {
            return;
        }
        let (place, raised) = (
            (Reverse(before), sequence, node),
            (Reverse(Urgency::High), sequence, node),
        );
        let frame = self.frames.get_mut(&document).expect("it came with one");
        let Some(active) = self.running.get_mut(&node) else {
            frame.waiting.remove(&place);
            frame.waiting.insert(raised);
            return self.run();
        };
        frame.running_medium -= usize::from(before == Urgency::Medium);
        match &mut active.counted {
            Some(class @ RequestClass::Delayable) => {
                *class = RequestClass::Other;
                self.delayable -= 1;
                self.others += 1;
            }
            Some(RequestClass::Other) => {}
            None => {
                let group = self.group(node);
                let former = Group {
                    urgency: before,
                    ..group
                };
                if let Some(queue) = self.waiting.get_mut(&former) {
                    queue.remove(&place);
                    if queue.is_empty() {
                        self.waiting.remove(&former);
                    }
                }
                self.waiting.entry(group).or_default().insert(raised);
            }
        }
        self.run();
    }

    /// The host of `node` has responded to it.
    pub(crate) fn handle_head(&mut self, node: usize) {
        if self.known_hosts.insert(self.plan.partition[node]) {
            self.run();
        }
    }

    /// The parser of `document` has reached its body.
    pub(crate) fn handle_body_start(&mut self, document: usize) {
        if let Some(frame) = self.frames.get_mut(&document) {
            frame.is_tight = false;
        }
        self.run();
    }

    /// Reports the duration of a TCP handshake or of a response.
    pub(crate) fn handle_round_trip(&mut self, time: Duration) {
        self.shortest = self.shortest.min(time);
        self.samples += 1;
        self.run();
    }

    fn is_slow(&self) -> bool {
        self.samples >= MIN_SAMPLES && self.shortest >= SLOW
    }

    /// The next node that may be requested.
    pub(crate) fn poll(&mut self) -> Option<usize> {
        self.ready.pop_front()
    }

    fn run(&mut self) {
        let documents: Vec<usize> = self.frames.keys().copied().collect();
        for document in documents {
            // The first request in the queue blocks those behind it, here and in the network service.
            let is_free = self.scheduler == Scheduler::Chromium49;
            let next = |frame: &mut DocumentQueue| frame.next(is_free);
            while let Some(node) = self.frames.get_mut(&document).and_then(next) {
                self.admit(node, document);
                self.sequence += 1;
                self.arrivals.insert(node, (self.sequence, document));
                let urgency = self.plan.urgency[node];
                let queue = self.waiting.entry(self.group(node)).or_default();
                queue.insert((Reverse(urgency), self.sequence, node));
            }
        }
        self.serve();
    }

    /// Starts the waiting requests that may start, in their order.
    ///
    /// A start never helps a request behind it. So if one may not start, all others of its group may not either.
    fn serve(&mut self) {
        let queues = self.waiting.iter();
        let firsts = queues.filter_map(|(&group, queue)| Some((*queue.first()?, group)));
        let mut next: BTreeSet<(Place, Group)> = firsts.collect();
        let mut is_blocked = false;
        while let Some((place, group)) = next.pop_first() {
            let node = place.2;
            // A request that does not count does not wait for those that count, nor for those to another host.
            let may_pass =
                !is_blocked || self.scheduler == Scheduler::Chromium49 || !self.is_delayable(node);
            if !may_pass || !self.may_start(node) {
                // A request that waits only for its host does not block those to other hosts.
                is_blocked |= self.is_full();
                continue;
            }
            let queue = self.waiting.get_mut(&group).expect("it has a request");
            queue.remove(&place);
            match queue.first() {
                Some(&place) => {
                    next.insert((place, group));
                }
                None => {
                    self.waiting.remove(&group);
                }
            }
            self.start(node);
        }
    }

    fn group(&self, node: usize) -> Group {
        let plan = &self.plan;
        Group {
            host: plan.host[node],
            partition: plan.partition[node],
            is_multiplexed: plan.is_multiplexed[node],
            urgency: plan.urgency[node],
        }
    }

    fn admit(&mut self, node: usize, document: usize) {
        let frame = self
            .frames
            .get_mut(&document)
            .expect("the node was in the queue");
        frame.running += 1;
        frame.running_medium += usize::from(self.plan.urgency[node] == Urgency::Medium);
        let counted = None;
        self.running
            .insert(node, ActiveRequest { document, counted });
    }

    fn start(&mut self, node: usize) {
        let counted = match self.is_delayable(node) {
            true => RequestClass::Delayable,
            false => RequestClass::Other,
        };
        match counted {
            RequestClass::Delayable => self.delayable += 1,
            RequestClass::Other => self.others += 1,
        }
        *self.in_flight.entry(self.plan.host[node]).or_default() += 1;
        self.running.get_mut(&node).expect("it runs").counted = Some(counted);
        self.ready.push_back(node);
    }

    /// True if the host of `node` is known to order responses by priority.
    fn has_priorities(&self, node: usize) -> bool {
        self.plan.is_multiplexed[node] && self.known_hosts.contains(&self.plan.partition[node])
    }

    fn is_delayable(&self, node: usize) -> bool {
        let has_priorities = self.has_priorities(node);
        match self.scheduler {
            Scheduler::Chromium49 => self.plan.urgency[node] == Urgency::Low && !has_priorities,
            _ => self.plan.urgency[node] < Urgency::High && (self.is_slow() || !has_priorities),
        }
    }

    fn may_start(&self, node: usize) -> bool {
        if self.scheduler == Scheduler::Chromium49 {
            return !self.is_delayable(node) || self.may_start_in_chromium_49(node);
        }
        !self.is_delayable(node) || (!self.is_full() && !self.is_host_full(node))
    }

    /// True if no delayable request may start.
    fn is_full(&self) -> bool {
        let (most, weight) = match self.is_slow() {
            true => (MAX_DELAYABLE_SLOW, WEIGHT_WHEN_SLOW),
            false => (MAX_DELAYABLE, 0),
        };
        self.delayable + weight * self.others >= most
    }

    /// True if no delayable request to the host of `node` may start.
    fn is_host_full(&self, node: usize) -> bool {
        !self.has_priorities(node) && self.in_flight_to_host_of(node) >= MAX_PER_HOST
    }

    fn in_flight_to_host_of(&self, node: usize) -> usize {
        let in_flight = self.in_flight.get(&self.plan.host[node]);
        in_flight.copied().unwrap_or_default()
    }

    /// Whether a delayable request may start.
    fn may_start_in_chromium_49(&self, node: usize) -> bool {
        let host = self.plan.host[node];
        let same_host = self.in_flight_to_host_of(node);
        // The document itself is not in the queue.
        let document = self.plan.body_at.keys().next();
        let document = document.filter(|it| self.layout_blocking.contains(it));
        let is_document_of_host = document.is_some_and(|&it| self.plan.host[it] == host);
        let has_no_body = self.frames.values().next().is_some_and(|it| it.is_tight);
        let is_layout_blocked = has_no_body || !self.layout_blocking.is_empty();
        let others = self.others + usize::from(document.is_some());
        self.delayable < MAX_DELAYABLE
            && same_host + usize::from(is_document_of_host) < MAX_PER_HOST
            && (!is_layout_blocked || others <= 1 && self.delayable == 0)
    }
}

impl DocumentQueue {
    /// The next node that may run; the first one if `is_free`.
    fn next(&mut self, is_free: bool) -> Option<usize> {
        let &first = self.waiting.first()?;
        let (Reverse(urgency), _, node) = first;
        let may_run = is_free
            || !self.is_tight
            || urgency == Urgency::High
            || self.running < MAX_TIGHT_MODE
            || urgency == Urgency::Medium && self.running_medium < MAX_TIGHT_MODE;
        may_run.then(|| {
            self.waiting.remove(&first);
            node
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Urgency::{High, Low, Medium};

    /// A page with document 0 and other nodes of the urgencies `rest`.
    fn page(rest: &[Urgency], is_multiplexed: bool) -> Throttle {
        throttle_of(Scheduler::Chromium, rest, is_multiplexed)
    }

    fn throttle_of(scheduler: Scheduler, rest: &[Urgency], is_multiplexed: bool) -> Throttle {
        let urgency: Vec<_> = [&[High], rest].concat();
        let plan = UrgencyPlan {
            // Nodes above 10 are of another host.
            host: (0..urgency.len()).map(|it| usize::from(it > 10)).collect(),
            partition: (0..urgency.len()).map(|it| usize::from(it > 10)).collect(),
            is_multiplexed: vec![is_multiplexed; urgency.len()],
            is_measured: vec![true; urgency.len()],
            same_url: BTreeMap::new(),
            known_hosts: BTreeSet::new(),
            raised_after: BTreeMap::new(),
            urgency,
            body_at: [(0, 100)].into(),
        };
        Throttle::new(scheduler, plan)
    }

    /// Enqueues all nodes; returns those that may be requested at once.
    fn enqueue_all(throttle: &mut Throttle) -> Vec<usize> {
        for node in 1..throttle.plan.urgency.len() {
            throttle.enqueue(node, 0, false);
        }
        polled(throttle)
    }

    fn polled(throttle: &mut Throttle) -> Vec<usize> {
        std::iter::from_fn(|| throttle.poll()).collect()
    }

    #[test]
    fn a_raised_request_no_longer_waits_for_the_limits() {
        // Eleven images of two hosts that have not responded; six of the first host may start, and four of the second.
        let mut throttle = page(&[Low; 16], false);
        throttle.handle_body_start(0);
        let started = enqueue_all(&mut throttle);
        assert_eq!(started, [1, 2, 3, 4, 5, 6, 11, 12, 13, 14]);
        throttle.raise(9);
        assert_eq!(polled(&mut throttle), [9]);
        // One in flight no longer counts, so the next of the other host starts.
        throttle.raise(11);
        assert_eq!(polled(&mut throttle), [15]);
        for node in [9, 11] {
            throttle.raise(node); // again
            throttle.done(node);
        }
        assert!(polled(&mut throttle).is_empty());
        throttle.done(12);
        assert_eq!(polled(&mut throttle), [16]);
    }

    #[test]
    fn a_frame_of_another_site_does_not_know_a_host_of_the_page_and_counts_for_it() {
        let mut throttle = page(&[Low; 8], true);
        throttle.plan.partition[8] = 2;
        throttle.handle_body_start(0);
        assert_eq!(enqueue_all(&mut throttle), [1, 2, 3, 4, 5, 6]);
        throttle.handle_head(1);
        assert_eq!(polled(&mut throttle), [7], "seven are in flight");
        throttle.done(1);
        assert!(polled(&mut throttle).is_empty());
        throttle.done(2);
        assert_eq!(polled(&mut throttle), [8]);
    }

    #[test]
    fn a_raised_request_does_not_wait_for_the_head() {
        let mut throttle = page(&[Low, Low, Low, Medium, Medium, Medium], true);
        assert_eq!(enqueue_all(&mut throttle), [1, 2, 4, 5]);
        throttle.raise(3);
        assert_eq!(polled(&mut throttle), [3]);
        throttle.raise(4);
        assert_eq!(polled(&mut throttle), [6], "one Medium less is in flight");
        for node in 1..=6 {
            throttle.done(node);
        }
        throttle.raise(5);
        assert!(polled(&mut throttle).is_empty(), "it has ended");
    }

    #[test]
    fn chromium_49_loads_one_image_at_a_time_beside_document_and_style_sheet() {
        let mut throttle =
            throttle_of(Scheduler::Chromium49, &[High, Medium, Low, Low, Low], false);
        assert_eq!(
            enqueue_all(&mut throttle),
            [1, 2],
            "none beside three others"
        );
        throttle.done(2);
        assert_eq!(polled(&mut throttle), [0; 0], "none beside two others");
        throttle.done(1);
        assert_eq!(polled(&mut throttle), [3]);
        throttle.handle_body_start(0);
        throttle.done(3);
        assert_eq!(polled(&mut throttle), [4], "the document is not complete");
        throttle.done(0);
        assert_eq!(polled(&mut throttle), [5]);
    }

    #[test]
    fn chromium_49_has_six_requests_to_a_host_in_flight_until_it_has_priorities() {
        // Nodes 0 to 10 are of one host, and 11 and 12 of another.
        let first = [1, 2, 3, 4, 5, 6, 11, 12];
        for is_multiplexed in [false, true] {
            let mut throttle = throttle_of(Scheduler::Chromium49, &[Low; 12], is_multiplexed);
            throttle.handle_body_start(0);
            throttle.done(0);
            assert_eq!(enqueue_all(&mut throttle), first);
            throttle.handle_head(3);
            let rest = if is_multiplexed { 7..11 } else { 0..0 };
            assert_eq!(polled(&mut throttle), rest.collect::<Vec<_>>());
        }
    }

    #[test]
    fn tight_mode_allows_two_requests_or_two_more_of_medium_urgency() {
        let mut throttle = page(&[High, High, Low, Medium, Medium, Medium, Low], true);
        assert_eq!(enqueue_all(&mut throttle), [1, 2, 4, 5]);
        throttle.done(4);
        assert_eq!(polled(&mut throttle), [6]);
        for node in [1, 2, 5] {
            throttle.done(node);
        }
        assert_eq!(polled(&mut throttle), [3], "one beside the last of Medium");
        throttle.handle_body_start(0);
        assert_eq!(polled(&mut throttle), [7]);
    }

    #[test]
    fn ten_requests_are_in_flight_and_six_to_a_host_until_it_has_priorities() {
        // Nodes 0 to 10 are of one host, and the others of another.
        let first = [1, 2, 3, 4, 5, 6, 11, 12, 13, 14];
        for is_multiplexed in [false, true] {
            let mut throttle = page(&[Low; 18], is_multiplexed);
            throttle.handle_body_start(0);
            assert_eq!(enqueue_all(&mut throttle), first);
            throttle.done(11);
            assert_eq!(polled(&mut throttle), [15], "the first host has six");
            throttle.done(3);
            assert_eq!(polled(&mut throttle), [7]);
            throttle.handle_head(7);
            let rest = if is_multiplexed { 8..11 } else { 0..0 };
            assert_eq!(polled(&mut throttle), rest.collect::<Vec<_>>());
        }
    }

    #[test]
    fn urgent_requests_pass_the_limit_of_a_host_and_count_for_it() {
        let mut throttle = page(&[High, Low, Low, Low, Low, Low, Low, High], false);
        throttle.handle_body_start(0);
        assert_eq!(enqueue_all(&mut throttle), [1, 2, 3, 4, 5, 6, 8]);
        throttle.done(8);
        assert_eq!(polled(&mut throttle), [0; 0], "six are in flight");
        throttle.done(1);
        assert_eq!(polled(&mut throttle), [7]);
    }

    #[test]
    fn on_slow_networks_hosts_with_priorities_have_no_limit_of_their_own() {
        for is_multiplexed in [false, true] {
            let mut throttle = page(&[Low; 10], is_multiplexed);
            throttle.handle_round_trip(SLOW);
            throttle.handle_round_trip(SLOW);
            throttle.handle_head(0);
            throttle.handle_body_start(0);
            let most = if is_multiplexed { 8 } else { 6 };
            assert_eq!(enqueue_all(&mut throttle), (1..=most).collect::<Vec<_>>());
        }
    }

    #[test]
    fn on_slow_networks_eight_are_in_flight_and_urgent_ones_weigh_three() {
        for is_multiplexed in [false, true] {
            let mut throttle = page(
                &[High, High, High, Low, Medium, Low, Medium],
                is_multiplexed,
            );
            throttle.handle_round_trip(2 * SLOW);
            throttle.handle_round_trip(SLOW);
            throttle.handle_body_start(0);
            assert_eq!(enqueue_all(&mut throttle), [1, 2, 3]);
            throttle.done(1);
            assert_eq!(polled(&mut throttle), [5, 7], "6 and 2 are 8");
            throttle.done(2);
            assert_eq!(polled(&mut throttle), [4, 6]);
        }
        let nearly = SLOW - Duration::from_nanos(1);
        for round_trips in [&[][..], &[SLOW], &[SLOW, nearly]] {
            let mut throttle = page(&[High, High, High, Low], true);
            round_trips
                .iter()
                .for_each(|&time| throttle.handle_round_trip(time));
            throttle.handle_body_start(0);
            assert_eq!(enqueue_all(&mut throttle), [1, 2, 3, 4], "{round_trips:?}");
        }
    }

    #[test]
    fn a_followed_redirect_never_waits_but_counts_in_flight() {
        let mut throttle = page(&[High, High, Low, Low], true);
        for node in [1, 2, 4] {
            throttle.enqueue(node, 0, false);
        }
        assert_eq!(polled(&mut throttle), [1, 2]);
        throttle.enqueue(3, 0, true);
        assert_eq!(polled(&mut throttle), [3]);
        throttle.done(1);
        assert_eq!(polled(&mut throttle), [0; 0]);
        throttle.done(2);
        assert_eq!(polled(&mut throttle), [4]);
    }
}
