package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is a store with an organization for the agents of a test.
type fixture struct {
	*agent.Store
	org db.Org
}

// newStore returns a store with a new organization in the database that this package's tests share, and the pool of
// that database.
func newStore(t *testing.T) (fixture, *pgxpool.Pool) {
	t.Helper()
	pool, org := dbtest.Org(t)
	return storeOf(t, pool, org), pool
}

func storeOf(t testing.TB, pool *pgxpool.Pool, org db.Org) fixture {
	t.Helper()
	documents, err := files.New(pool, files.Options{Limits: agent.LimitsOf})
	if err != nil {
		t.Fatal(err)
	}
	log := recall.New(pool, recall.Options{})
	return fixture{&agent.Store{DB: pool, Files: documents, Recall: log, Blocks: &block.Store{DB: pool},
		Archival:    archival.New(pool, archival.Options{}),
		Working:     &working.Store{DB: pool, Recall: log, Files: documents},
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{}),
		Compaction:  compaction.New(pool, log), Tools: oneTool}, org}
}

func create(t *testing.T, s fixture, n agent.New) agent.Agent {
	t.Helper()
	a, err := s.Create(t.Context(), s.org, n)
	if err != nil {
		t.Fatalf("create %s: %v", n.Name, err)
	}
	return a
}

// text stores a file as if it had been uploaded and parsed.
func (s fixture) text(t testing.TB, folder files.Folder, name, content string) {
	t.Helper()
	var key int64
	lines := strings.Count(content, "\n")
	err := s.DB.QueryRow(t.Context(), `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, lines, chars)
		VALUES ($1, $2, $3, $3, 'text/plain', 0, '', 1, $4, $5) RETURNING key`,
		s.org, folder.Key, name, lines, len(content)).Scan(&key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Exec(t.Context(), `
		INSERT INTO file_segments (file_key, generation, ordinal, org, first_line, lines, continues, text)
		VALUES ($1, 1, 0, $2, 1, $3, false, $4)`, key, s.org, lines, content); err != nil {
		t.Fatal(err)
	}
}

// folder creates a folder with one file for each name. All files have the same content.
func folder(t *testing.T, s fixture, name, content string, names []string) files.Folder {
	t.Helper()
	f, err := s.Files.CreateFolder(t.Context(), s.org, files.NewFolder{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s.text(t, f, name, content)
	}
	return f
}

// numbered returns names that contain the numbers 0 to count - 1.
func numbered(format string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf(format, i)
	}
	return names
}
