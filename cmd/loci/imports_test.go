package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the import path of this module.
const module = "github.com/loci-memory/loci"

// house lists, for each package, the packages of this module that it may import. The memories (recall, archival, files)
// do not import each other, and no package imports one above it. A new package or import is a change of the design: add
// it here, and give the reason in the commit.
var house = map[string][]string{
	"agent/loop/model": {"compaction/llm", "embed/provider", "recall", "recall/chat"},

	"agent/loop/model/modeltest": {},

	"agent/loop": {"agent", "agent/loop/model", "agent/tool", "chunker/frame", "db", "db/event", "db/queue", "recall",
		"recall/chat"},

	// bench drives an agent in the same way as the tests.
	"bench": {"agent/agenttest", "compaction/clip", "compaction/lab", "compaction/lab/transcript",
		"compaction/llm/llmtest", "compaction/plan", "compaction/policy", "db", "db/local", "embed/lexicon", "recall",
		"recall/tokens"},
	"db/backup":    {"db", "db/migrations"},
	"db/cluster":   {"db"},
	"cmd/loci/web": {},
	"cmd/loci": {"agent", "agent/handover", "agent/loop", "agent/loop/model", "agent/subagent", "agent/tool",
		"agent/tool/jq", "archival", "cmd/loci/lettadb", "cmd/loci/web", "compaction", "compaction/lab",
		"compaction/lab/transcript",
		"compaction/llm", "compaction/policy", "compaction/replay", "compaction/store", "compaction/summary", "db",
		"db/backup", "db/cluster", "db/event", "db/job", "db/local", "db/queue", "embed", "embed/endpoint", "embed/local",
		"embed/rank",
		"files", "files/document", "files/document/child", "files/document/operator", "files/sandbox",
		"memory/block", "memory/file", "memory/search",
		"memory/working", "recall", "recall/tokens", "server", "server/gateway", "server/mcp", "server/metrics",
		"server/rest",
		"tenant/apikey", "tenant/erase", "tenant/quota", "tenant/retention"},
	"agent/handover": {"agent", "chunker/frame", "compaction/prose", "compaction/summary", "db", "db/queue", "memory/file",
		"memory/working", "recall", "recall/chat"},
	"tenant/apikey": {"db"},
	"compaction/replay": {"compaction/lab", "compaction/lab/transcript", "compaction/policy", "compaction/summary", "db",
		"db/queue", "recall"},
	"server/agentfile": {"agent", "agent/tool", "archival", "compaction/store", "db", "db/event", "files",
		"memory/block", "memory/file", "memory/working", "recall", "server/letta", "server/rest"},
	"cmd/loci/lettadb": {"agent", "archival", "compaction/clip", "compaction/store", "db", "embed", "embed/endpoint",
		"files", "memory/block", "recall", "server/agentfile", "server/letta", "tenant/apikey"},
	"server": {"agent", "agent/handover", "agent/loop", "agent/pastsession", "agent/subagent", "agent/tool", "archival",
		"compaction/lab", "compaction/lab/transcript", "compaction/plan", "compaction/policy", "compaction/replay",
		"compaction/store", "db", "db/event", "db/job", "db/spool", "embed/endpoint", "embed/rank", "files", "files/document",
		"memory/block", "memory/file", "memory/search", "memory/working", "recall", "recall/chat", "server/agentfile",
		"server/capture", "server/console", "server/gateway", "server/letta", "server/mcp", "server/metrics", "server/rest",
		"tenant/apikey",
		"tenant/erase", "tenant/quota", "tenant/retention", "tenant/userdata"},
	"server/console": {},
	"server/capture": {"db", "recall", "recall/chat", "server/rest"},
	"server/gateway": {"agent", "agent/loop", "agent/loop/model", "agent/tool", "db", "recall", "recall/chat",
		"recall/tokens", "server/capture", "server/rest", "tenant/apikey"},
	"server/letta": {"agent", "agent/loop", "agent/tool", "archival", "compaction/plan", "compaction/policy",
		"compaction/store", "db", "db/event", "embed/rank", "files", "memory/block", "memory/file", "recall", "recall/chat",
		"server/rest", "tenant/apikey"},
	"server/rest":       {"db", "db/spool", "files", "recall", "tenant/apikey"},
	"server/servertest": {"db"},
	"agent/subagent": {"agent", "agent/loop", "agent/tool", "chunker/frame", "db", "db/queue", "files",
		"memory/block", "memory/working",
		"recall"},
	"server/mcp": {"chunker/frame", "db", "db/event", "files", "recall", "recall/tokens", "agent", "memory/block",
		"agent/handover", "memory/file", "agent/tool"},
	"server/metrics": {"db/counts"},
	"agent/tool": {"agent", "agent/pastsession", "agent/tool/jq", "archival", "chunker/frame", "chunker/pattern",
		"compaction/policy", "compaction/summary", "db", "embed/rank", "files", "memory/block", "memory/file",
		"memory/search", "memory/working", "recall", "recall/tokens", "tenant/erase"},
	"agent/tool/jq":     {"db", "files/document", "files/sandbox"},
	"db/job":            {"db"},
	"tenant/quota":      {"db"},
	"tenant/retention":  {"db"},
	"agent/pastsession": {"chunker/frame", "compaction/summary", "db", "recall", "recall/chat"},
	"tenant/erase": {"archival", "compaction", "compaction/store", "db", "files", "memory/block", "memory/file",
		"recall"},
	"tenant/userdata": {"archival", "db", "memory/block", "memory/file", "recall"},
	"memory/search": {"db", "db/filter", "embed/lexicon", "embed/rank", "files", "recall", "archival", "agent",
		"memory/block",
		"memory/working", "memory/file"},
	"agent": {"archival", "chunker/frame", "compaction", "compaction/clip", "compaction/plan", "compaction/policy",
		"compaction/prose", "compaction/store", "compaction/summary", "db", "db/event", "db/queue", "files", "memory/block",
		"memory/file", "memory/working", "recall", "recall/chat", "recall/tokens"},
	"agent/agenttest": {"compaction/llm", "compaction/llm/llmtest", "compaction/store", "compaction/summary"},
	"memory/block":    {"chunker/frame", "db", "db/event"},
	"memory/working":  {"chunker/frame", "db", "db/event", "files", "recall", "recall/tokens"},
	"memory/file": {"chunker/frame", "db", "db/event", "chunker", "embed", "embed/endpoint",
		"embed/lexicon", "embed/rank"},
	"compaction/clip": {"chunker/frame", "compaction/prose", "compaction/tokenmath", "db", "recall", "recall/chat",
		"recall/tokens"},
	"compaction/plan": {"chunker/frame", "compaction/clip", "compaction/prose", "compaction/tokenmath", "db", "recall",
		"recall/tokens"},
	"compaction/prose":     {"chunker/frame", "compaction/tokenmath", "recall", "recall/tokens"},
	"compaction/tokenmath": {},
	"compaction/summary": {"chunker/frame", "compaction/clip", "compaction/plan", "compaction/prose",
		"compaction/tokenmath", "recall", "recall/chat", "recall/redact", "recall/tokens"},
	"compaction/store": {"compaction/clip", "compaction/plan", "compaction/prose", "db", "db/event", "recall",
		"recall/tokens"},
	"compaction": {"compaction/clip", "compaction/plan", "compaction/prose", "compaction/tokenmath", "compaction/store",
		"compaction/summary", "db", "recall", "recall/tokens"},
	"compaction/llm": {"compaction/summary", "db", "embed/provider", "recall/chat"},
	"compaction/lab": {"compaction/clip", "compaction/lab/transcript", "compaction/plan", "compaction/policy",
		"compaction/prose", "compaction/summary", "db", "recall", "recall/chat", "recall/tokens"},
	"compaction/lab/transcript": {"recall", "recall/chat"},
	"compaction/policy": {"chunker/frame", "compaction/clip", "compaction/plan", "compaction/prose",
		"compaction/summary", "db", "recall", "recall/tokens"},
	"compaction/llm/llmtest": {},
	"files": {"chunker/frame", "db", "db/queue", "db/event", "db/filter", "db/spool", "chunker", "embed", "embed/endpoint",
		"embed/lexicon", "embed/rank", "embed/wordindex", "lru", "files/document", "files/grep"},
	"files/grep":           {"chunker/frame", "chunker/pattern", "db"},
	"files/document":       {},
	"files/document/child": {"db/spool", "files/document", "files/sandbox"},
	"files/sandbox":        {},

	// Programs of the operator read what no reader does. They are above child, because the pages that OCR reads are shown
	// by a child, and what a converter writes is read by one.
	"files/document/operator": {"db/spool", "files/document", "files/document/child", "files/sandbox"},
	"archival": {"db", "db/event", "db/filter", "db/spool", "chunker", "embed", "embed/endpoint", "embed/lexicon",
		"embed/rank",
		"embed/wordindex"},
	"recall": {"chunker/frame", "chunker/pattern", "db", "db/event", "db/filter", "embed", "embed/endpoint",
		"embed/lexicon",
		"embed/rank", "embed/wordindex", "recall/redact", "recall/tokens"},
	"recall/chat":          {"chunker/frame", "recall", "recall/tokens"},
	"recall/chat/chattest": {},
	"recall/redact":        {},
	"embed":                {},
	"embed/lexicon":        {},
	"embed/endpoint":       {"db", "db/queue", "embed", "embed/lexicon", "embed/provider"},
	"embed/rank":           {"db", "embed", "embed/endpoint", "embed/lexicon", "embed/wordindex"},
	"embed/wordindex":      {"db"},
	"embed/provider":       {},
	"bench/questions":      {},
	"embed/local":          {"embed", "embed/endpoint"},
	"embed/embedtest":      {"db", "db/queue", "embed/endpoint", "embed/lexicon", "embed/rank"},

	"files/document/documenttest": {"files/document"},

	"db/counts":          {"db"},
	"db":                 {"db/migrations"},
	"chunker/frame":      {},
	"chunker/pattern":    {},
	"db/event":           {"db"},
	"db/filter":          {"db"},
	"db/spool":           {},
	"db/queue":           {"db"},
	"db/dbtest":          {"db", "db/cluster", "db/dbtest/scale", "db/migrations"},
	"db/dbtest/golden":   {},
	"db/dbtest/scale":    {},
	"db/queue/queuetest": {"db"},
	"db/dbtest/shared":   {"db/dbtest", "db/local"},
	"db/local":           {},
	"db/migrations":      {},
	"chunker":            {},
	"lru":                {},
	"recall/tokens":      {},
}

// forTests lists packages that the tests of every package may import. Product code may import them only if house says
// so.
var forTests = []string{"db/dbtest", "db/dbtest/golden", "db/dbtest/scale", "embed/embedtest", "compaction/llm/llmtest",
	"files/document/documenttest", "agent/agenttest", "server/servertest", "recall/chat/chattest",
	"db/queue/queuetest",
	"agent/loop/model/modeltest"}

// inTests lists additional imports of a package's tests. The tests of policies and of past sessions ask a provider that
// fails, and those of summaries write them under policies. Searches of messages are measured with questions, and with
// the built-in model. The index of words is tested with the weights of
// embed/lexicon, and its searches with the built-in model. db is tested on its own Postgres with an unreachable
// standby, and db and db/backup with databases that are spread over a cluster.
var inTests = map[string][]string{"compaction/policy": {"compaction", "compaction/llm"},
	"agent/pastsession":  {"compaction/llm"},
	"compaction/summary": {"compaction/policy"},
	"db":                 {"db/cluster", "db/local"},
	"db/backup":          {"db/cluster"},
	"embed/wordindex":    {"embed/lexicon", "embed/rank"},
	"embed/rank":         {"embed/local"},
	"recall":             {"bench/questions", "embed/local"},
	"bench/questions":    {"embed", "embed/endpoint", "embed/lexicon", "embed/local", "embed/rank"}}

// The web frameworks, and the packages that may import them.
var (
	frameworks      = []string{"github.com/labstack/echo/v4", "github.com/danielgtaylor/huma/v2"}
	frameworkOwners = []string{"server", "server/rest"}
)

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestPackagesImportWhatTheDesignAllows(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name := within(p.ImportPath)
		allowed, planned := house[name]
		if !planned {
			t.Errorf("package %s is not in the map of allowed imports", name)
			continue
		}
		for _, path := range p.Imports {
			if strings.HasPrefix(path, module) && !slices.Contains(allowed, within(path)) {
				t.Errorf("%s imports %s, which the map does not allow", name, within(path))
			}
			if isFramework(path) && !slices.Contains(frameworkOwners, name) {
				t.Errorf("%s imports %s; only %v may", name, path, frameworkOwners)
			}
		}
		for _, path := range append(p.TestImports, p.XTestImports...) {
			in := within(path)
			if strings.HasPrefix(path, module) && in != name && !slices.Contains(allowed, in) &&
				!slices.Contains(forTests, in) && !slices.Contains(inTests[name], in) && !reaches(allowed, in) {
				t.Errorf("the tests of %s import %s, which the map puts above or beside it", name, in)
			}
		}
	}
}

func isFramework(path string) bool {
	return slices.ContainsFunc(frameworks, func(f string) bool { return strings.HasPrefix(path, f) })
}

// reaches reports whether a package is one of some packages, or below one of them.
func reaches(roots []string, target string) bool {
	for _, p := range roots {
		if p == target || reaches(house[p], target) {
			return true
		}
	}
	return false
}

func within(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports",
		module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read go list: %v", err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("go list found %d packages", len(list))
	}
	return list
}

// docs/architecture.md draws each package but those for tests, and the files that it names exist.
func TestTheArchitectureIsDrawn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(text), "```\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	drawn := map[string]bool{}
	for line := range strings.Lines(drawing) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" {
			drawn[name] = true
		}
	}
	for name := range house {
		parts := strings.Split(name, "/")
		last := parts[len(parts)-1]
		isForTests := strings.HasSuffix(last, "test") || strings.HasPrefix(name, "db/dbtest/")
		if isForTests && !strings.Contains(string(text), "`"+last+"`") {
			t.Errorf("docs/architecture.md does not name %s, which is for tests", name)
		}
		if !isForTests && !drawn[name] {
			t.Errorf("docs/architecture.md does not draw %s", name)
		}
		delete(drawn, name)
	}
	for name := range drawn {
		t.Errorf("docs/architecture.md draws %s, which is no package", name)
	}
	for _, file := range regexp.MustCompile("`([a-z/]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat("../../" + file[1]); err != nil && strings.Contains(file[1], "/") {
			t.Errorf("docs/architecture.md names %s, which does not exist", file[1])
		}
	}
}
