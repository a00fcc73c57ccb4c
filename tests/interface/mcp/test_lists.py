from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client, MCPError
from talking import process_on, server_on, talk, text

from torchtriage.catalog.load import catalog
from torchtriage.interface.skillpack.pack import ROUTER, sheet

TOOLS = {"ask", "check", "read", "run", "explain", "next_step"}


def test_every_tool_tells_what_it_does_takes_and_answers(home: Path, era: str) -> None:
    async def body(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.description
            assert all(each.get("description") for each in tool.input_schema["properties"].values()), tool.name
            assert "listed" not in tool.input_schema["properties"]
            assert tool.output_schema
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.annotations
            assert tool.annotations.read_only_hint is (tool.name != "run")
            assert tool.annotations.destructive_hint is (True if tool.name == "run" else None)

    talk(body, server_on(home), mode=era)


def test_a_client_over_stdio_lists_calls_and_reads(home: Path, era: str) -> None:
    async def body(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        answer = await client.call_tool("ask", {"text": "training is slow, should I use mixed precision?"})
        assert answer.structured_content
        assert answer.structured_content["route"][0] == "performance-profiling"
        checked = await client.call_tool("check", {"paths": ["faulty.py"]})
        assert checked.structured_content
        assert [each["fault"] for each in checked.structured_content["findings"]] == ["gradients-not-zeroed"]
        page = await client.read_resource("torchtriage://fault/clip-before-unscale")
        assert getattr(page.contents[0], "text", "").startswith("# clip-before-unscale: ")
        prompt = await client.get_prompt("triage", {"symptom": "NaN\nafter an hour"})
        assert "> NaN\n> after an hour\n" in getattr(prompt.messages[0].content, "text", "")

    talk(body, process_on(home), mode=era)


def test_the_server_says_route_then_one_sheet_then_measure(home: Path, era: str) -> None:
    async def body(client: Client) -> None:
        said = client.instructions or ""
        places = [said.index(word) for word in ("Route first", "Then one sheet", "Then measure")]
        assert places == sorted(places)

    talk(body, server_on(home), mode=era)


def test_every_sheet_there_is_can_be_listed_and_read(home: Path, era: str) -> None:
    async def body(client: Client) -> None:
        uris = [str(each.uri) for each in (await client.list_resources()).resources]
        assert f"torchtriage://specialist/{ROUTER}" in uris
        for uri in uris:
            read = await client.read_resource(uri)
            assert getattr(read.contents[0], "text", "") == sheet(uri.rpartition("/")[2])
            assert read.contents[0].mime_type == "text/markdown"
        templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        assert templates == {"torchtriage://specialist/{name}", "torchtriage://fault/{slug}"}

    talk(body, server_on(home), mode=era)


@pytest.mark.parametrize(
    "uri",
    [
        "torchtriage://fault/no-such-fault",
        "torchtriage://fault/..%2f..%2f..%2fetc%2fpasswd",
        "torchtriage://specialist/../../pyproject",
        "torchtriage://specialist/%00",
        "torchtriage://secret/x",
        "file:///etc/passwd",
        "https://example.org/",
    ],
)
def test_what_is_no_resource_of_ours_is_not_read(home: Path, uri: str) -> None:
    async def body(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.read_resource(uri)

    talk(body, server_on(home))


def test_names_of_faults_are_completed(home: Path) -> None:
    async def body(client: Client) -> None:
        from mcp.types import ResourceTemplateReference

        ref = ResourceTemplateReference(type="ref/resource", uri="torchtriage://fault/{slug}")
        found = await client.complete(ref, {"name": "slug", "value": "clip-"})
        assert found.completion.values == sorted(each for each in catalog().faults if each.startswith("clip-"))

    talk(body, server_on(home))


def test_a_prompt_tells_the_same_words_to_everyone(home: Path, era: str) -> None:
    prompts: list[Any] = []

    async def body(client: Client) -> None:
        prompts.extend((await client.list_prompts()).prompts)

    talk(body, server_on(home), mode=era)
    assert [prompt.name for prompt in prompts] == ["triage"]


def test_an_error_tells_what_where_and_what_to_do(home: Path, era: str) -> None:
    async def body(client: Client) -> None:
        answer = await client.call_tool("explain", {"name": "clip-before-unscal"})
        assert answer.is_error
        assert "clip-before-unscale" in text(answer)
        assert "\nwhere: " in text(answer)
        assert "\ndo: " in text(answer)

    talk(body, server_on(home), mode=era)
