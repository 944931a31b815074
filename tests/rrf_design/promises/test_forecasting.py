from __future__ import annotations

from typing import Any

from rrf_design.promises import PilotSettings, forecast_pilot


def test_a_forecast_reads_no_gold_and_can_say_that_no_pilot_pays(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.05)
    text = (world.folder / "table.jsonl").read_text()
    (world.folder / "table.jsonl").write_text(text.replace('"booked": ', '"booked": "?", "was": '))
    found = forecast_pilot(world.plan(PilotSettings(100, 0.1)))
    assert found["least_labels"] == 29
    assert any(entry["pays"] for entry in found["sizes"])
    assert not forecast_pilot(world.plan(PilotSettings(299, 0.01)))["sizes"][-1]["pays"]
