package server_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/db/dbtest"
)

// TestMain is also the program that runs jq expressions.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "run-jq" {
		if err := jq.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dbtest.Main(m)
}
