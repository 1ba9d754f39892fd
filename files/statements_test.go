package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// atMost fails the test if more than n statements were sent.
func atMost(t *testing.T, n int, what string, sent []string) {
	t.Helper()
	if len(sent) <= n {
		return
	}
	var list strings.Builder
	for i, sql := range sent {
		fmt.Fprintf(&list, "\n%3d. %.150s", i+1, strings.Join(strings.Fields(sql), " "))
	}
	t.Errorf("%s sends %d statements, want at most %d:%s", what, len(sent), n, list.String())
}

// The statements of a file, from its upload until words and vectors find it.
func TestAFileTakesFewStatements(t *testing.T) {
	t.Parallel()
	fx, _, _ := newDenseFixture(t, 8)
	folder := fx.folder("f")
	settle := func() {
		embedtest.Eventually(t, "the jobs are done", func() bool {
			return fx.count(`SELECT count(*) FROM river_job WHERE finalized_at IS NULL`) == 0
		})
	}
	fx.send(folder, "first.txt", manyLines(600), files.Suffix) // with what a server sends once
	settle()
	atMost(t, 29, "a small file", dbtest.Sent(t, fx.pool, func() {
		fx.send(folder, "small.txt", manyLines(600), files.Suffix)
		settle()
	}))
}
