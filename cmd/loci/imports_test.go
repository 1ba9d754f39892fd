package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
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

	"agent/loop": {"chunker/frame", "db", "db/queue", "compaction", "recall", "recall/chat", "agent",
		"agent/loop/model",
		"agent/tool"},

	// bench drives an agent as the tests do.
	"bench": {"db", "db/local", "embed/lexicon", "compaction", "compaction/lab", "compaction/lab/transcript",
		"compaction/llm/llmtest", "compaction/policy", "recall",
		"recall/tokens", "agent/agenttest"},
	"db/backup": {"db", "db/migrations"},
	"cmd/loci": {"db", "db/backup", "db/queue", "db/event", "db/local", "embed", "embed/endpoint", "embed/local",
		"embed/rank", "files", "files/document",
		"files/document/child", "files/sandbox",
		"recall", "recall/tokens", "archival", "compaction", "compaction/policy", "compaction/lab",
		"compaction/lab/transcript", "compaction/llm", "server",
		"tenant/apikey", "agent",
		"memory/block", "memory/working", "tenant/erase", "agent/handover", "db/job", "cmd/loci/lettadb",
		"agent/loop",
		"server/mcp", "memory/search",
		"memory/file",
		"agent/loop/model", "server/metrics", "tenant/quota", "compaction/replay", "server/rest", "tenant/retention",
		"agent/subagent",
		"agent/tool", "agent/tool/jq"},
	"agent/handover": {"chunker/frame", "db", "db/queue", "recall", "recall/chat", "compaction", "agent",
		"memory/working", "memory/file"},
	"tenant/apikey": {"db"},
	"compaction/replay": {"db", "db/queue", "recall", "compaction", "compaction/lab", "compaction/lab/transcript",
		"compaction/policy"},
	"server/agentfile": {"db", "db/event", "files", "recall", "archival", "compaction", "agent", "memory/block",
		"memory/working", "server/letta", "memory/file", "server/rest",
		"agent/tool"},
	"cmd/loci/lettadb": {"compaction", "db", "embed", "embed/endpoint", "files", "recall", "archival", "agent",
		"server/agentfile",
		"tenant/apikey", "memory/block", "server/letta"},
	"server": {"db", "db/event", "embed/endpoint", "embed/rank", "files", "files/document", "recall", "recall/chat",
		"archival", "compaction",
		"compaction/lab", "compaction/lab/transcript", "compaction/policy", "tenant/apikey", "agent",
		"server/agentfile", "memory/block", "agent/handover",
		"memory/working", "server/capture", "server/console", "tenant/erase", "db/job", "server/letta",
		"agent/loop",
		"server/mcp", "memory/search",
		"memory/file", "memory/search", "server/metrics", "tenant/quota", "compaction/replay", "server/rest",
		"tenant/retention",
		"agent/seance",
		"agent/subagent", "agent/tool"},
	"server/console": {},
	"server/capture": {"db", "recall", "recall/chat", "server/rest"},
	"server/letta": {"db", "db/event", "embed/rank", "files", "recall", "recall/chat", "archival", "compaction",
		"compaction/policy", "agent", "tenant/apikey", "memory/block", "agent/loop", "memory/file",
		"server/rest", "agent/tool"},
	"server/rest":       {"db", "files", "files/document", "recall", "tenant/apikey"},
	"server/servertest": {"db"},
	"agent/subagent": {"chunker/frame", "db", "db/queue", "files", "recall", "recall/chat", "agent",
		"memory/block",
		"memory/working", "agent/loop", "memory/file", "agent/tool"},
	"server/mcp": {"chunker/frame", "db", "db/event", "files", "recall", "recall/tokens", "agent", "memory/block",
		"agent/handover", "memory/file", "agent/tool"},
	"server/metrics": {"db"},
	"agent/tool": {"chunker/frame", "db", "files", "recall", "recall/chat", "archival", "agent", "memory/block",
		"memory/working", "tenant/erase", "memory/file", "memory/search", "agent/seance", "agent/tool/jq",
		"compaction", "compaction/policy"},
	"agent/tool/jq":    {"db", "files/document", "files/sandbox"},
	"db/job":           {"db"},
	"tenant/quota":     {"db"},
	"tenant/retention": {"db"},
	"agent/seance":     {"chunker/frame", "db", "recall", "recall/chat", "compaction"},
	"tenant/erase":     {"db", "files", "recall", "archival", "compaction", "memory/file"},
	"memory/search": {"db", "embed/lexicon", "embed/rank", "files", "recall", "archival", "agent", "memory/block",
		"memory/working", "memory/file"},
	"agent": {"chunker/frame", "db", "db/event", "db/queue", "files", "recall", "archival", "compaction",
		"compaction/policy",
		"memory/block", "memory/working", "memory/file", "recall/chat", "recall/tokens"},
	"agent/agenttest": {"compaction", "compaction/llm", "compaction/llm/llmtest"},
	"memory/block":    {"db", "db/event"},
	"memory/working":  {"chunker/frame", "db", "db/event", "files", "recall", "recall/chat", "recall/tokens"},
	"memory/file": {"chunker/frame", "db", "db/event", "chunker", "embed", "embed/endpoint",
		"embed/lexicon", "embed/rank"},
	"compaction": {"chunker/frame", "db", "db/event", "recall", "recall/redact", "recall/chat",
		"recall/tokens"},
	"compaction/llm": {"compaction", "db", "embed/provider", "recall/chat"},
	"compaction/lab": {"compaction", "compaction/lab/transcript", "compaction/policy", "db", "recall", "recall/chat",
		"recall/tokens"},
	"compaction/lab/transcript": {"recall", "recall/chat"},
	"compaction/policy":         {"chunker/frame", "compaction", "db", "recall", "recall/tokens"},
	"compaction/llm/llmtest":    {},
	"files": {"chunker/frame", "db", "db/queue", "db/event", "chunker", "embed", "embed/endpoint", "embed/lexicon",
		"embed/rank", "embed/wordindex", "lru",
		"files/document",
		"files/grep"},
	"files/grep":           {"chunker/frame", "db"},
	"files/document":       {},
	"files/document/child": {"files/document", "files/sandbox"},
	"files/sandbox":        {},
	"archival": {"db", "db/event", "chunker", "embed", "embed/endpoint", "embed/lexicon", "embed/rank",
		"embed/wordindex"},
	"recall": {"chunker/frame", "db", "db/event", "embed", "embed/endpoint", "embed/lexicon", "embed/rank",
		"embed/wordindex", "recall/redact",
		"recall/tokens"},
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

	"db":                 {"db/migrations"},
	"chunker/frame":      {},
	"db/event":           {"db"},
	"db/queue":           {"db"},
	"db/dbtest":          {"db", "db/dbtest/scale", "db/migrations"},
	"db/dbtest/scale":    {},
	"db/queue/queuetest": {"db"},
	"db/dbtest/shared":   {"db/dbtest", "db/local"},
	"db/local":           {},
	"db/migrations":      {},
	"chunker":            {},
	"lru":                {},
	"recall/tokens":      {},
}

// forTests lists the packages that the tests of every package may import, and product code only where the map says so.
var forTests = []string{"db/dbtest", "db/dbtest/scale", "embed/embedtest", "compaction/llm/llmtest",
	"files/document/documenttest", "agent/agenttest", "server/servertest", "recall/chat/chattest",
	"db/queue/queuetest",
	"agent/loop/model/modeltest"}

// inTests lists what the tests of a package import in addition: those of policies ask a provider that fails, and the
// index of words is tested with the weights that embed/lexicon makes, and its searches with the built-in model.
var inTests = map[string][]string{"compaction/policy": {"compaction/llm"}, "embed/wordindex": {"embed/lexicon"},
	"embed/rank":      {"embed/local"},
	"bench/questions": {"embed", "embed/endpoint", "embed/lexicon", "embed/local", "embed/rank"}}

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

// reaches reports whether the package to is one of the packages from, or below one of them.
func reaches(from []string, to string) bool {
	for _, p := range from {
		if p == to || reaches(house[p], to) {
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
