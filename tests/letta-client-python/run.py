"""Drives the built program with the Python client of Letta that is installed, synchronous and asynchronous.

Each flow is written once, against both: `do` awaits what must be awaited, and `each` iterates over lists and streams.
An answer that the client's types do not allow fails the flow.
"""

import asyncio
import importlib.metadata
import inspect
import sys
import traceback

import loci as program


async def do(result):
    """The result of a call of either client."""
    return await result if inspect.isawaitable(result) else result


async def each(result):
    """The items of a list, of all pages of a list, or of a stream."""
    if not hasattr(result, "__aiter__"):
        result = await do(result)
    if hasattr(result, "__aiter__"):
        return [item async for item in result]
    return list(result)


async def refused(error, result):
    """The error of a call that must fail so."""
    try:
        await do(result())
    except error as err:
        return err
    raise AssertionError(f"no {error.__name__}")


def main():
    version = importlib.metadata.version("letta-client")
    if version.startswith("0."):
        import flows0 as flows
    else:
        import flows1 as flows
    wanted = sys.argv[1:]
    model = program.Model()
    server = program.Loci(model)
    failed = []
    try:
        for kind, client in flows.clients(server.url, program.KEY):
            asyncio.run(drive(f"letta-client {version}, {kind}", flows, client, model, wanted, failed))
    finally:
        failed += server.stop()
    for line in failed:
        print(line, file=sys.stderr)
    sys.exit(1 if failed else 0)


async def drive(name, flows, client, model, wanted, failed):
    for flow in flows.ALL:
        if wanted and flow.__name__ not in wanted:
            continue
        model.says()
        try:
            await flow(client, model)
            print(f"ok: {name}: {flow.__name__}")
        except Exception:  # what a flow raises is its failure
            failed.append(f"FAIL: {name}: {flow.__name__}\n{traceback.format_exc()}")


if __name__ == "__main__":
    main()
