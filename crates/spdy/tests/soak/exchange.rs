//! One request and its response, checked by both sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::{Body, Error, Priority, SharedRuntime, client};

use crate::body::{body, first_wrong, pause};
use crate::plan::Plan;
use crate::random::TestRandom;
use crate::tally::Tally;

/// Reads a body to its end, or to where it is left; every byte is looked at.
pub(crate) async fn read(
    mut body: Body,
    seed: u64,
    leaves: Option<u64>,
    runtime: &SharedRuntime,
    random: &mut TestRandom,
    tally: &Tally,
) -> Result<(u64, bool), Option<Error>> {
    let mut at = 0;
    loop {
        if leaves.is_some_and(|leaves| at >= leaves) {
            return Ok((at, false));
        }
        if random.one_in(40) {
            pause(runtime, random.below(30)).await; // a reader that pauses
        }
        match body.frame().await {
            None => return Ok((at, true)),
            Some(Err(error)) => return Err(error.downcast::<Error>().ok().map(|error| *error)),
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                if let Some(position) = first_wrong(seed, at, &data) {
                    tally.fault(format!("byte {position} of a body is wrong"));
                }
                at += data.len() as u64;
                tally
                    .correct_bytes
                    .fetch_add(data.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

pub(crate) async fn respond(
    request: Request<Body>,
    runtime: SharedRuntime,
    mut random: TestRandom,
    tally: Arc<Tally>,
) -> Response<Body> {
    let Some(plan) = Plan::read(request.uri().path()) else {
        tally.fault(format!("no plan: {}", request.uri()));
        return Response::new(Body::empty());
    };
    let response_body = body(
        &runtime,
        random.fork(),
        plan.response_seed(),
        plan.down,
        plan.server_breaks,
    );
    let upload = request.into_body();
    if plan.ignores {
        return Response::new(response_body);
    }
    let (reading, mut of_reading) = (runtime.clone(), random.fork());
    let check = async move {
        let result = read(upload, plan.seed, None, &reading, &mut of_reading, &tally).await;
        // One that ends by FIN is whole; one that breaks is the client's affair.
        if let Ok((length, _)) = result
            && length != plan.up
        {
            tally.fault(format!("unexpected upload of {length} bytes: {plan:?}"));
        }
    };
    match plan.responds_early {
        true => runtime.spawn(Box::pin(check)),
        false => check.await,
    }
    Response::new(response_body)
}

/// One exchange, of which every outcome must have its reason.
pub(crate) async fn run_request(
    session: &client::Session,
    runtime: &SharedRuntime,
    mut random: TestRandom,
    cut: &AtomicBool,
    tally: &Tally,
) {
    let plan = Plan::new(&mut random);
    let upload = match plan.up {
        0 if !plan.client_breaks => Body::empty(),
        up => body(runtime, random.fork(), plan.seed, up, plan.client_breaks),
    };
    let request = Request::post(plan.url()).body(upload).expect("valid");
    let priority = Priority::new(random.below(8) as u8);
    let result = match session.request(request, priority).await {
        Err(error) => Err(Some(error)),
        Ok(response) => {
            let (body, seed) = (response.into_body(), plan.response_seed());
            read(body, seed, plan.leaves, runtime, &mut random, tally).await
        }
    };
    let counter = match result {
        Ok((length, true)) if length == plan.down && !plan.server_breaks => &tally.completed,
        Ok((_, false)) => &tally.cancelled,
        Err(_) if cut.load(Ordering::Relaxed) => &tally.cut,
        Err(Some(Error::Closing)) => &tally.closing,
        Err(Some(error))
            if (plan.client_breaks || plan.server_breaks) && error.reset_status().is_some() =>
        {
            &tally.broken
        }
        Err(Some(Error::Body(_))) if plan.client_breaks => &tally.broken,
        result => {
            return tally.fault(format!("{plan:?} ended with {result:?}"));
        }
    };
    Tally::count(counter);
}
