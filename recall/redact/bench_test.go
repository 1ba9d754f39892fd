package redact_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall/redact"
)

// BenchmarkRedact redacts texts, most of them without secrets. For comparison it also copies them.
func BenchmarkRedact(b *testing.B) {
	code, err := os.ReadFile(filepath.Join(sources(b), "net", "http", "server.go"))
	if err != nil {
		b.Fatal(err)
	}
	texts := map[string]string{
		"code": strings.Repeat(string(code), 8),
		"prose": strings.Repeat("The quick brown fox asks where the keys of the bicycle are, and whether anybody has seen "+
			"them lately. ", 10_000),
		"log": strings.Repeat("2026-11-21T17:32:29.123Z INFO request method=GET "+
			"url=http://localhost:8283/v1/agents/agent-3f status=200\n", 8_000),
		"message": "Where did I park the red bicycle?",
		"base64":  random("bench", b64, 1<<20),
		"secrets": strings.Repeat(strings.Repeat("ordinary text ", 100)+"ghp"+"_"+random("bench", alnum, 36)+"\n", 700),
	}
	for _, name := range []string{"code", "prose", "log", "message", "base64", "secrets"} {
		text := texts[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				plain.Redact(text)
			}
		})
		b.Run(name+"/copy", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				sink = strings.Clone(text)
			}
		})
	}
}

var sink string

// BenchmarkMemory measures the memory of the engine after it was built, after one chat message, and with all patterns
// compiled.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	none, before := resident(b), heap()
	plain.Redact("nothing")
	engine := heap()
	plain.Redact("see https://example.com, Authorization: Bearer YOUR_TOKEN; export OPENAI_API_KEY=sk-... " +
		"GITHUB_TOKEN=ghp_... AKIA... eyJ...")
	chat, chatResident := heap(), resident(b)
	for b.Loop() {
		redact.Warm()
	}
	b.ReportMetric(engine-before, "heap-B-engine")
	b.ReportMetric(chat-before, "heap-B-chat")
	b.ReportMetric(chatResident-none, "rss-B-chat")
	b.ReportMetric(heap()-before, "heap-B-all")
	b.ReportMetric(resident(b)-none, "rss-B-all")
}

// resident returns the process's resident memory in bytes.
func resident(b *testing.B) float64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip(err)
	}
	fields := strings.Fields(string(raw))
	pages := 0
	for _, c := range fields[1] {
		pages = pages*10 + int(c-'0')
	}
	return float64(pages * os.Getpagesize())
}
