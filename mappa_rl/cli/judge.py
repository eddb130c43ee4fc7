"""Commands about judges: `judge audit`, `rescore`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mappa_rl.cli.app import ConfigFile, Overrides, RunFolder, app, config_of, console

if TYPE_CHECKING:
    from mappa_envs.judges.base import Judge
    from mappa_rl.audit.stored import Case

judge_app = typer.Typer(no_args_is_help=True, help="Judges: how far can they be trusted?")
app.add_typer(judge_app, name="judge")

Episodes = Annotated[
    list[Path] | None,
    typer.Option(
        "--episodes",
        "-e",
        help="Stored episodes: transcripts of a run, or `*.episodes.jsonl`. Default: the run's newest evaluation.",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option("--judge", help="A name, or YAML such as `{name: local_coach, model: ...}`. Default: the settings'."),
]


@judge_app.command(name="audit")
def audit_command(
    settings: Overrides = None,
    episodes: Episodes = None,
    judge: JudgeOption = None,
    run: RunFolder = None,
    config: ConfigFile = None,
    rescores: Annotated[int, typer.Option(min=1, help="How often each turn is scored.")] = 3,
    injections: Annotated[int, typer.Option(min=0, help="Turns that the injection battery is tried on.")] = 20,
    limit: Annotated[int | None, typer.Option(min=1, help="Use the first so many episodes.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the attacked turns; seeds the intervals.")] = 0,
    out: Annotated[Path, typer.Option(help="The report as JSON.")] = Path("judge-audit.json"),
) -> None:
    """Audit a judge on stored episodes.

    Stability over re-scores, failures per role, agreement with the outcome, length and position bias, and what
    actions gain that ask for a 10, forge markers or imitate the system prompt.
    """
    from mappa_envs import background
    from mappa_rl.audit.audit import audit
    from mappa_rl.audit.tables import audit_tables
    from mappa_rl.files import write_text

    asked, cases = _judge_and_cases(settings, episodes, judge, run, config, limit)
    report = background.run(audit(asked, cases, rescores=rescores, injections=injections, seed=seed))
    console.print(f"judge: {report.judge}", markup=False, soft_wrap=True)
    console.print(
        f"{report.episodes} episodes on {report.tasks} tasks, {report.successes} successes, each turn scored "
        f"{report.rescores} times; 95 % intervals over tasks"
    )
    for table in audit_tables(report):
        console.print()
        console.print(table)
    cost = report.cost
    console.print(
        f"\ncost: {cost.calls} calls, {cost.prompt_tokens} + {cost.completion_tokens} tokens, money {cost.money:.4f}"
    )
    write_text(out, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    console.print(f"report: {out}", markup=False, soft_wrap=True)


@app.command(name="rescore")
def rescore_command(
    settings: Overrides = None,
    episodes: Episodes = None,
    judge: JudgeOption = None,
    run: RunFolder = None,
    config: ConfigFile = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use the first so many episodes.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seeds the intervals.")] = 0,
    out: Annotated[
        Path, typer.Option(help="The episodes with new final verdicts; the comparison goes beside it as .json.")
    ] = Path("rescored.jsonl"),
) -> None:
    """Score stored episodes with another judge, without new rollouts, and compare with the scores they carry.

    The new verdicts are the final ones of the new transcripts; what each turn was given stays in it.
    """
    from mappa_envs import background
    from mappa_rl.audit.rescore import rescore, write_rescored
    from mappa_rl.audit.tables import rescore_table
    from mappa_rl.files import write_text

    asked, cases = _judge_and_cases(settings, episodes, judge, run, config, limit)
    result = background.run(rescore(asked, cases, seed=seed))
    console.print(f"judge: {result.judge}\n", markup=False, soft_wrap=True)
    console.print(rescore_table(result))
    write_rescored(out, result)
    comparison = out.with_suffix(".json")
    write_text(comparison, json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n")
    console.print(f"\nepisodes: {out}\ncomparison: {comparison}", markup=False, soft_wrap=True)


def _judge_and_cases(
    settings: list[str] | None,
    episodes: list[Path] | None,
    judge: str | None,
    run: Path | None,
    config: Path | None,
    limit: int | None,
) -> tuple[Judge, list[Case]]:
    from mappa_rl.audit.stored import cases_of, newest_evaluation, read_transcripts
    from mappa_rl.training.build import make_env

    # `reward=outcome` would put the outcome in the judge's place.
    overrides = [*(settings or []), "reward=process", *([f"env.kwargs.judge={judge}"] if judge is not None else [])]
    chosen = config_of(config, run, overrides)
    transcripts = read_transcripts(episodes or [newest_evaluation(run)])[:limit]
    envs = [make_env(chosen, split) for split in ("eval", "train")]
    return envs[0].judge, cases_of(transcripts, envs)
