package main

import (
	"fmt"
	"os"

	"github.com/loci-memory/loci/agent/tool/jq"
)

// runJQCmd runs one expression of jq in a child process.
type runJQCmd struct{}

// Run implements the command.
func (runJQCmd) Run() error { return jq.Main() }

// jqRunner returns a runner of expressions that runs this program as child processes.
func jqRunner() (*jq.Runner, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which runs jq in processes of its own: %w", err)
	}
	return jq.New(program, "run-jq"), nil
}
