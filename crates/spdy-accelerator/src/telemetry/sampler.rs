//! Which traces are recorded: by the configuration, else by OpenTelemetry's variables of the environment (*General SDK Configuration*).
//!
//! An unknown value is reported and ignored, as OpenTelemetry requires.

use spdy_proxy::telemetry::spans::Sampler;

/// The variable that names the sampler.
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
/// The sampled fraction, for samplers that use one.
const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
/// Prefix of a sampler's name: a parent span of another program decides, and the named sampler is used only for traces that begin
/// here.
const BY_PARENT: &str = "parentbased_";

/// The sampler for this part of traces, or for the environment if the configuration has none; and warnings about the environment.
pub(super) fn read(
    part: Option<f64>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Sampler, Vec<String>) {
    let mut warnings = Vec::new();
    if let Some(part) = part {
        return (Sampler::by_parent(part), warnings);
    }
    let Some(named) = variable(SAMPLER) else {
        return (Sampler::default(), warnings);
    };
    let name = named.to_ascii_lowercase();
    let (follows_parents, rest) = match name.strip_prefix(BY_PARENT) {
        Some(rest) => (true, rest),
        None => (false, name.as_str()),
    };
    let part = match rest {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => ratio(variable(ARGUMENT), &mut warnings),
        _ => {
            warnings.push(format!(
                "{SAMPLER} in the environment: expected always_on, always_off or traceidratio, with or without the prefix {BY_PARENT}, \
                 found {named:?}; using {BY_PARENT}always_on"
            ));
            return (Sampler::default(), warnings);
        }
    };
    let sampler = Sampler {
        part,
        follows_parents,
    };
    (sampler, warnings)
}

/// The ratio that `argument` states, or 1.
fn ratio(argument: Option<String>, warnings: &mut Vec<String>) -> f64 {
    let Some(argument) = argument else {
        return 1.0;
    };
    let part = argument.trim().parse().ok();
    part.filter(|part| (0.0..=1.0).contains(part))
        .unwrap_or_else(|| {
            warnings.push(format!(
                "{ARGUMENT} in the environment: expected a number from 0 to 1, found {argument:?}; using 1"
            ));
            1.0
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(part: Option<f64>, sampler: &str, argument: &str) -> (f64, bool, Vec<String>) {
        let variable = |name: &str| {
            let value = match name {
                SAMPLER => sampler,
                ARGUMENT => argument,
                _ => "",
            };
            (!value.is_empty()).then(|| value.to_owned())
        };
        let (sampler, warnings) = read(part, &variable);
        (sampler.part, sampler.follows_parents, warnings)
    }

    #[test]
    fn sampler_names_and_ratios_follow_opentelemetry() {
        for (name, argument, part, follows_parents) in [
            ("", "0.5", 1.0, true),
            ("always_on", "0.5", 1.0, false),
            ("always_off", "0.5", 0.0, false),
            ("traceidratio", "", 1.0, false),
            ("traceidratio", "0.25", 0.25, false),
            ("parentbased_always_on", "", 1.0, true),
            ("parentbased_always_off", "", 0.0, true),
            ("parentbased_traceidratio", " 0.125 ", 0.125, true),
            ("ParentBased_TraceIdRatio", "0", 0.0, true),
        ] {
            let read = of(None, name, argument);
            assert_eq!(read, (part, follows_parents, vec![]), "{name} {argument}");
        }
    }

    #[test]
    fn the_configuration_overrides_the_environment() {
        assert_eq!(of(Some(0.5), "always_off", "x"), (0.5, true, vec![]));
    }

    #[test]
    fn an_unknown_sampler_is_reported_with_its_replacement() {
        for (name, argument, part, follows_parents, warning) in [
            (
                "jaeger_remote",
                "0.5",
                1.0,
                true,
                "OTEL_TRACES_SAMPLER in the environment: expected always_on, always_off or traceidratio, with or without the prefix \
                 parentbased_, found \"jaeger_remote\"; using parentbased_always_on",
            ),
            (
                "traceidratio",
                "1.5",
                1.0,
                false,
                "OTEL_TRACES_SAMPLER_ARG in the environment: expected a number from 0 to 1, found \"1.5\"; using 1",
            ),
            (
                "parentbased_traceidratio",
                "nan",
                1.0,
                true,
                "OTEL_TRACES_SAMPLER_ARG in the environment: expected a number from 0 to 1, found \"nan\"; using 1",
            ),
        ] {
            let read = of(None, name, argument);
            assert_eq!(read, (part, follows_parents, vec![warning.to_owned()]));
        }
    }
}
