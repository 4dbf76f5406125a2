//! `talon_sdk::testing::Call`, as a plugin's own unit tests use it.

use std::time::Duration;

use serde_json::json;
use talon_sdk::testing::{Call, MemoryState, ProgressLog, call};
use talon_sdk::{Context, Output, Plugin, ToolError};

struct Config {
    unit: &'static str,
}

#[talon_sdk::args]
#[serde(rename_all = "kebab-case")]
enum Scale {
    Small,
    VeryLarge,
}

#[talon_sdk::args]
struct Measure {
    /// What to measure.
    length: f64,
    scale: Option<Scale>,
    #[serde(default)]
    marks: Vec<u8>,
    origin: Option<Point>,
    user_id: Option<String>,
}

#[talon_sdk::args]
struct Point {
    x: f64,
}

/// Measures something.
///
/// In units of the config.
#[talon_sdk::tool(read_only, always_include, name = "measure-it", inject(user_id, "tenant-id"))]
async fn measure(args: Measure, cx: Context) -> Result<Output, ToolError> {
    let config = cx.config::<Config>()?;
    let factor = match args.scale {
        None | Some(Scale::Small) => 1.0,
        Some(Scale::VeryLarge) => 1000.0,
    };
    let who = (args.user_id, cx.injected("tenant-id").map(str::to_owned));
    let length = args.length - args.origin.map_or(0.0, |point| point.x);
    Output::text(format!("{} {}", length * factor, config.unit))
        .structured(json!({"who": who, "marks": args.marks}))
}

/// Counts its calls.
#[talon_sdk::tool]
async fn count(cx: Context) -> Result<String, ToolError> {
    let state = cx.state()?;
    let count: u32 = state.get_json("count").await?.unwrap_or(0) + 1;
    state.set_json("count", &count).await?;
    Ok(count.to_string())
}

/// Never comes back.
#[talon_sdk::tool]
async fn never() -> Result<(), ToolError> {
    std::future::pending().await
}

// Promises: SDK-2
#[test]
fn the_attribute_declares_what_the_function_says() {
    let action = measure().action();
    assert_eq!(action.name, "measure-it");
    assert_eq!(action.description, "Measures something.\n\nIn units of the config.");
    assert!(action.read_only && action.always_include && !action.user_only);
    assert_eq!(action.inject_context_args, ["user_id", "tenant-id"]);
    let told: Vec<_> =
        action.parameters.iter().map(|p| (p.name.as_str(), p.r#type.as_str(), p.required)).collect();
    assert_eq!(
        told,
        [
            ("length", "number", true),
            ("scale", "string", false),
            ("marks", "array", false),
            ("origin", "object", false)
        ]
    );
    assert!(action.parameters[1].schema.contains("very-large"), "{}", action.parameters[1].schema);
    Plugin::new("p").tools([measure(), count(), never()]).check().expect("all well");
}

// Promises: SDK-18
#[tokio::test]
async fn a_call_brings_all_that_a_host_could() {
    let output = Call::new(measure())
        .args(json!({"length": 1.5, "scale": "very-large", "marks": [1, 2]}))
        .with(Config { unit: "m" })
        .injected("user_id", "u1")
        .injected("tenant-id", "t1")
        .injected("secret", "not declared, not seen")
        .run()
        .await
        .expect("measured");
    assert_eq!(output.content(), "1500 m");
    assert_eq!(output.structured_content(), Some(&json!({"who": ["u1", "t1"], "marks": [1, 2]})));
}

#[tokio::test]
async fn a_config_that_the_test_forgot_is_named() {
    let error = call(measure(), json!({"length": 1})).await.expect_err("no config");
    let said = format!("{error:?}");
    assert!(said.contains("Config") && said.contains("Call::with"), "{said}");
    let error =
        Call::new(measure()).args(json!({"length": 1})).with(7_u8).run().await.expect_err("another type");
    assert!(format!("{error:?}").contains("Config"), "{error:?}");
}

// Promises: SDK-3
#[tokio::test]
async fn bad_arguments_are_told_as_on_the_wire() {
    for (args, says) in [
        (json!({}), "argument `length` is missing"),
        (json!({"length": "long"}), "argument `length`: expected a number, got \"long\""),
        (json!({"length": 1, "scale": "huge"}), "expected one of small, very-large"),
        (json!({"length": 1, "marks": [300]}), "argument `marks`: invalid value: integer `300`, expected u8"),
        (json!({"length": 1, "marks": 300}), "argument `marks`: expected a JSON array"),
        (json!({"length": 1, "origin": {"x": 1, "z": 2}}), "argument `origin`: unknown field `z`"),
        (json!({"lenght": 1}), "unknown argument `lenght`; measure-it takes length, scale, marks, origin"),
    ] {
        let result = Call::new(measure()).args(args).with(Config { unit: "m" }).run().await;
        let error = result.expect_err("refused");
        assert!(error.message().contains(says), "expected {says:?} in {error:?}");
    }
}

// Promises: SDK-18
#[tokio::test]
async fn state_lasts_between_calls() {
    let state = MemoryState::new();
    for expected in ["1", "2"] {
        let output = Call::new(count()).state(&state).run().await.expect("counted");
        assert_eq!(output.content(), expected);
    }
    assert_eq!(state.get("count").expect("kept"), b"2");
    let error = call(count(), json!({})).await.expect_err("no state");
    assert!(format!("{error:?}").contains("serves no state"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_call() {
    let error = Call::new(never()).timeout(Duration::from_secs(5)).run().await.expect_err("times out");
    assert_eq!(error.message(), "the deadline passed");
}

/// Tells how far it is.
#[talon_sdk::tool]
async fn climb(cx: Context) -> Result<(), ToolError> {
    for step in 0_u8..3 {
        cx.progress(step.into(), Some(2.0), &format!("step {step}\nand a second line"));
    }
    cx.progress(f64::INFINITY, None, "");
    Ok(())
}

#[tokio::test]
async fn progress_is_collected() {
    let log = ProgressLog::new();
    Call::new(climb()).progress(&log).run().await.expect("climbs");
    let told = log.entries();
    assert_eq!(told.iter().map(|p| p.progress).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
    assert_eq!((told[2].total, told[2].message.as_str()), (Some(2.0), "step 2"));
    call(climb(), json!({})).await.expect("nobody has to listen");
}
