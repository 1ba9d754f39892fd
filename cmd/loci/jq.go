package main

import (
	"context"
	"fmt"
	"os"

	"github.com/loci-memory/loci/agent/tool/jq"
)

// runJQCmd runs a jq expression, in a child process.
type runJQCmd struct{}

func (runJQCmd) Run(context.Context, streams) error { return jq.Main() }

// jqRunner returns a runner for jq expressions, which runs this program as child processes.
func jqRunner() (*jq.Runner, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which runs jq in processes of its own: %w", err)
	}
	return jq.New(program, "run-jq"), nil
}
