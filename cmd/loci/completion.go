package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// completionCmd prints what a shell reads to complete command lines.
type completionCmd struct {
	Shell string `arg:"" optional:"" enum:"bash,zsh,fish" help:"The shell: ${enum} (default: the one of SHELL)."`
	Code  bool   `short:"c" hidden:"" help:"Print it, as without this flag."`

	Line *cobra.Command
}

func (c completionCmd) Run(_ context.Context, s streams) error {
	shell := c.Shell
	if shell == "" {
		shell = filepath.Base(os.Getenv("SHELL"))
	}
	switch root := c.Line.Root(); shell {
	case "zsh":
		return root.GenZshCompletion(s.out)
	case "fish":
		return root.GenFishCompletion(s.out, true)
	}
	return c.Line.Root().GenBashCompletionV2(s.out, true)
}
