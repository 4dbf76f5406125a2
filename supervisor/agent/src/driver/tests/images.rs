//! Images in questions and in results.

use std::sync::Arc;

use talon_llm::model::{Image, Message, Request};
use talon_proto::plugin::{Action, Media};

use super::fakes::says;
use super::setting::Setting;
use crate::driver::*;
use crate::journal::JournalEntry;

/// The first model has vision, the second, cheaper one, none.
const CATALOG: &str = "
scripted/one: { tier: mid, context_window: 128000, tools: true, vision: true, cost: { input: 2, output: 10 } }
scripted-two/two: { tier: mid, context_window: 128000, tools: true, cost: { input: 1, output: 10 } }
";

fn gif(number: u8) -> Vec<u8> {
    [b"GIF89a".as_slice(), &[56, 0, number, 0, 0, 0, 0]].concat()
}

async fn with_image(setting: &Setting, request: &str) -> TurnSpec {
    let image = Image::read(&gif(28), "a.gif").expect("an image");
    let stored = [(image.clone(), Arc::from(gif(28)))];
    ImageSource::add(&*setting.images, "s", &stored).await.expect("stored");
    TurnSpec { images: vec![image], ..setting.spec(request) }
}

/// What a request has of images: those that are shown, and those without bytes.
fn shown(request: &Request) -> (usize, usize) {
    let images = request.messages.iter().flat_map(|message| match message {
        Message::Images { images, .. } => images.as_slice(),
        _ => &[],
    });
    let (with, without): (Vec<_>, Vec<_>) =
        images.partition(|image| request.images.bytes_of(image).is_some());
    (with.len(), without.len())
}

fn setting(script: &str) -> Setting {
    let mut setting = Setting::new(script);
    setting.catalog = CATALOG.to_owned();
    setting
}

// Promises: AGENT-160
#[tokio::test(start_paused = true)]
async fn a_question_with_images_goes_to_a_model_with_vision_and_a_notice_says_which_are_passed_over() {
    let setting = setting("answers: [{ say: a cat }]");
    let end = setting.run_spec(with_image(&setting, "what is this").await).await;
    assert_eq!(end.outcome, Ok("a cat".to_owned()));
    assert_eq!((setting.model.times(), setting.second.times()), (1, 0));
    assert_eq!(shown(&setting.model.last()), (1, 0));
    let notices = setting.heard.notices();
    let said = notices.iter().any(|notice| notice.text.contains("are not asked: scripted-two/two"));
    assert!(said, "{notices:?}");
    // The next question goes to the cheaper model, which is told what was there.
    assert_eq!(setting.answer("and now").await, "the second one");
    assert_eq!(shown(&setting.second.last()), (0, 1));
    let notices = setting.heard.notices();
    let said =
        notices.iter().any(|notice| notice.text.starts_with("scripted-two/two cannot look at pictures"));
    assert!(said, "{notices:?}");
}

// Promises: AGENT-160
#[tokio::test(start_paused = true)]
async fn without_a_model_that_looks_at_pictures_the_turn_says_so() {
    let mut setting = Setting::new("answers: [{ say: no }]");
    setting.plan = crate::context::ContextPlan::frugal();
    let (word, sentence) =
        setting.run_spec(with_image(&setting, "what is this").await).await.outcome.expect_err("no answer");
    assert_eq!(word, "no_vision");
    assert!(sentence.contains("cannot look at pictures"), "{sentence}");
    assert_eq!(setting.model.times(), 0);
}

// Promises: AGENT-162
#[tokio::test(start_paused = true)]
async fn an_interrupted_turn_has_its_images_again() {
    let setting = setting("answers: [{ say: a cat }]");
    let spec = with_image(&setting, "what is this").await;
    let with = crate::journal::TurnOptions { images: spec.images.clone(), ..Default::default() };
    let asked = JournalEntry::Asked { text: "what is this".to_owned(), with: Box::new(with) };
    let resumes = Some(Setting::interrupted(&[(1, asked)]));
    let end = setting.run_spec(TurnSpec { resumes, images: Vec::new(), ..spec }).await;
    assert_eq!(end.outcome, Ok("a cat".to_owned()));
    assert_eq!(shown(&setting.model.last()), (1, 0));
}

// Promises: AGENT-164
#[tokio::test(start_paused = true)]
async fn a_model_sees_images_of_a_tool_that_declares_them_with_the_plugins_name() {
    for (declared, seen) in [(vec!["image".to_owned()], 2), (Vec::new(), 0)] {
        let setting = setting(
            "answers:\n- { when: { step: 1 }, call: [{ tool: camera__look, arguments: {} }] }\n- { say: seen }",
        );
        let look = Action { name: "look".to_owned(), media: declared, ..Action::default() };
        setting.host.offers(vec![("camera", vec![look])]);
        setting.host.answers(|call| {
            let answer = says(&call, "here");
            Box::pin(async move {
                let mut answer = answer.await?;
                let item = |data| Media { kind: "image".to_owned(), data, ..Media::default() };
                answer.media = vec![item(gif(1)), item(gif(2)), item(gif(3)), item(b"<svg/>".to_vec())];
                Ok(answer)
            })
        });
        let end = setting.run_spec(TurnSpec {
            pins: talon_llm::route::router::Pins {
                request: Some("scripted/one".to_owned()),
                ..Default::default()
            },
            ..setting.spec("look")
        });
        assert_eq!(end.await.outcome, Ok("seen".to_owned()));
        let request = setting.model.last();
        assert_eq!(shown(&request), (seen, 0));
        let introductions: Vec<&String> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Images { introduction, .. } => Some(introduction),
                _ => None,
            })
            .collect();
        assert_eq!(introductions.len(), 1);
        assert!(introductions[0].contains("camera.look"), "{introductions:?}");
        // The result's text stays text.
        let contents: Vec<&String> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Tool { content, .. } => Some(content),
                _ => None,
            })
            .collect();
        assert!(contents.len() == 1 && contents[0].contains("here"), "{contents:?}");
    }
}
