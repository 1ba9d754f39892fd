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
	"server/loop/model": {"compaction/llm", "embed/provider", "recall", "recall/chat"},

	"server/loop/model/modeltest": {},

	"server/loop": {"chunker/frame", "db", "db/queue", "compaction", "recall", "recall/chat", "server/agent",
		"server/loop/model",
		"server/tool"},

	// bench drives an agent as the tests do.
	"bench": {"db", "db/local", "embed", "compaction", "compaction/lab", "compaction/lab/transcript",
		"compaction/llm/llmtest", "compaction/policy", "recall",
		"recall/tokens", "server/agent/agenttest"},
	"db/backup": {"db", "db/migrations"},
	"cmd/loci": {"db", "db/backup", "db/queue", "db/event", "db/local", "embed", "embed/local", "files", "files/document",
		"files/document/child", "files/sandbox",
		"recall", "recall/tokens", "archival", "compaction", "compaction/policy", "compaction/lab",
		"compaction/lab/transcript", "compaction/llm", "server",
		"server/apikey", "server/agent",
		"server/block", "server/block/working", "server/erase", "server/handover", "server/job", "server/lettadb",
		"server/loop",
		"server/mcp", "server/memorysearch",
		"server/memoryfile",
		"server/loop/model", "server/metrics", "server/quota", "server/replay", "server/rest", "server/retention",
		"server/subagent",
		"server/tool", "server/tool/jq"},
	"server/handover": {"chunker/frame", "db", "db/queue", "recall", "recall/chat", "compaction", "server/agent",
		"server/block/working", "server/memoryfile"},
	"server/apikey": {"db"},
	"server/replay": {"db", "db/queue", "recall", "compaction", "compaction/lab", "compaction/lab/transcript",
		"compaction/policy"},
	"server/agentfile": {"db", "db/event", "files", "recall", "archival", "compaction", "server/agent", "server/block",
		"server/block/working", "server/letta", "server/memoryfile", "server/rest",
		"server/tool"},
	"server/lettadb": {"compaction", "db", "embed", "files", "recall", "archival", "server/agent", "server/agentfile",
		"server/apikey", "server/block", "server/letta"},
	"server": {"db", "db/event", "embed", "files", "files/document", "recall", "recall/chat", "archival", "compaction",
		"compaction/lab", "compaction/lab/transcript", "compaction/policy", "server/apikey", "server/agent",
		"server/agentfile", "server/block", "server/handover",
		"server/block/working", "server/capture", "server/console", "server/erase", "server/job", "server/letta",
		"server/loop",
		"server/mcp", "server/memorysearch",
		"server/memoryfile", "server/memorysearch", "server/metrics", "server/quota", "server/replay", "server/rest",
		"server/retention",
		"server/seance",
		"server/subagent", "server/tool"},
	"server/console": {},
	"server/capture": {"db", "recall", "recall/chat", "server/rest"},
	"server/letta": {"db", "db/event", "embed", "files", "recall", "recall/chat", "archival", "compaction",
		"compaction/policy", "server/agent", "server/apikey", "server/block", "server/loop", "server/memoryfile",
		"server/rest", "server/tool"},
	"server/rest":       {"db", "files", "files/document", "recall", "server/apikey"},
	"server/servertest": {"db"},
	"server/subagent": {"chunker/frame", "db", "db/queue", "files", "recall", "recall/chat", "server/agent",
		"server/block",
		"server/block/working", "server/loop", "server/memoryfile", "server/tool"},
	"server/mcp": {"chunker/frame", "db", "db/event", "files", "recall", "recall/tokens", "server/agent", "server/block",
		"server/handover", "server/memoryfile", "server/tool"},
	"server/metrics": {"db"},
	"server/tool": {"chunker/frame", "db", "files", "recall", "recall/chat", "archival", "server/agent", "server/block",
		"server/block/working", "server/erase", "server/memoryfile", "server/memorysearch", "server/seance", "server/tool/jq",
		"compaction", "compaction/policy"},
	"server/tool/jq":   {"db", "files/document", "files/sandbox"},
	"server/job":       {"db"},
	"server/quota":     {"db"},
	"server/retention": {"db"},
	"server/seance":    {"chunker/frame", "db", "recall", "recall/chat", "compaction"},
	"server/erase":     {"db", "files", "recall", "archival", "compaction", "server/memoryfile"},
	"server/memorysearch": {"db", "embed", "files", "recall", "archival", "server/agent", "server/block",
		"server/block/working", "server/memoryfile"},
	"server/agent": {"chunker/frame", "db", "db/event", "db/queue", "files", "recall", "archival", "compaction",
		"compaction/policy",
		"server/block", "server/block/working", "server/memoryfile", "recall/chat", "recall/tokens"},
	"server/agent/agenttest": {"compaction", "compaction/llm", "compaction/llm/llmtest"},
	"server/block":           {"db", "db/event"},
	"server/block/working":   {"chunker/frame", "db", "db/event", "files", "recall", "recall/chat", "recall/tokens"},
	"server/memoryfile":      {"chunker/frame", "db", "db/event", "chunker", "embed"},
	"compaction": {"chunker/frame", "db", "db/event", "recall", "recall/redact", "recall/chat",
		"recall/tokens"},
	"compaction/llm": {"compaction", "db", "embed/provider", "recall/chat"},
	"compaction/lab": {"compaction", "compaction/lab/transcript", "compaction/policy", "db", "recall", "recall/chat",
		"recall/tokens"},
	"compaction/lab/transcript": {"recall", "recall/chat"},
	"compaction/policy":         {"chunker/frame", "compaction", "db", "recall", "recall/tokens"},
	"compaction/llm/llmtest":    {},
	"files": {"chunker/frame", "db", "db/queue", "db/event", "chunker", "embed", "embed/wordindex", "lru",
		"files/document",
		"files/grep"},
	"files/grep":           {"chunker/frame", "db"},
	"files/document":       {},
	"files/document/child": {"files/document", "files/sandbox"},
	"files/sandbox":        {},
	"archival":             {"db", "db/queue", "db/event", "chunker", "embed", "embed/wordindex"},
	"recall": {"chunker/frame", "db", "db/queue", "db/event", "embed", "embed/wordindex", "recall/redact",
		"recall/tokens"},
	"recall/chat":          {"chunker/frame", "recall", "recall/tokens"},
	"recall/chat/chattest": {},
	"recall/redact":        {},
	"embed":                {"db", "db/queue", "embed/provider", "embed/wordindex"},
	"embed/wordindex":      {"db"},
	"embed/provider":       {},
	"bench/questions":      {},
	"embed/local":          {"embed"},
	"embed/embedtest":      {"db", "db/queue", "embed"},

	"files/document/documenttest": {"files/document"},

	"db":                 {"db/migrations"},
	"chunker/frame":      {},
	"db/event":           {"db"},
	"db/queue":           {"db"},
	"db/dbtest":          {"db", "db/dbtest/scale", "db/local", "db/migrations"},
	"db/dbtest/scale":    {},
	"db/queue/queuetest": {"db"},
	"db/dbtest/shared":   {"db/dbtest"},
	"db/local":           {},
	"db/migrations":      {},
	"chunker":            {},
	"lru":                {},
	"recall/tokens":      {},
}

// forTests lists the packages that the tests of every package may import, and product code only where the map says so.
var forTests = []string{"db/dbtest", "db/dbtest/scale", "embed/embedtest", "compaction/llm/llmtest",
	"files/document/documenttest", "server/agent/agenttest", "server/servertest", "recall/chat/chattest",
	"db/queue/queuetest",
	"server/loop/model/modeltest"}

// inTests lists what the tests of a package import in addition: those of policies ask a provider that fails, and the
// index of words is tested with the weights that package embed makes, and its searches with the built-in model.
var inTests = map[string][]string{"compaction/policy": {"compaction/llm"}, "embed/wordindex": {"embed"},
	"embed": {"embed/local"}, "bench/questions": {"embed", "embed/local"}}

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
