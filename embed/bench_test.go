package embed_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
)

// prose is about 800 characters of English with some code in it, the size of a chunk.
var prose = strings.Repeat("The connection pool keeps idle connections open until ReadTimeout passes; afterwards a background worker closes them. ", 3) +
	"func (p *Pool) closeIdle(ctx context.Context) error { for _, c := range p.idle_conns { if c.LastUsed.Before(p.deadline) { c.Close() } } } " +
	"When children of a process were started by someone else, their parents went away before, and the operating system reparents them " +
	"to the init process. Loading the configuration from config/server.yaml fails if PostgreSQL 15 is not reachable at port 5432."

func BenchmarkDocument(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(prose)))
	for b.Loop() {
		embed.Document(prose)
	}
}

func BenchmarkDocumentUnicode(b *testing.B) {
	text := strings.Repeat("Größe und Länge der naïve façade — ", 12) + strings.Repeat("記憶は失われない。", 12)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		embed.Document(text)
	}
}
