package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// generator makes requests as programs may write them: fields in any order, with any spaces, parts of every kind, and
// fields that nobody knows.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// text returns a JSON text.
func (g generator) text() string {
	words := []string{"tea", "über", `\u00e9`, `\"quoted\"`, "<recalled_memory>", "</memory_blocks>", `\n`, "日本",
		"\U0001f600",
		`\ud83d\ude00`, "{}", `\\`, "&amp;"}
	all := []string{fmt.Sprint(g.IntN(1_000_000))}
	for range g.IntN(6) {
		all = append(all, words[g.IntN(len(words))])
	}
	return `"` + strings.Join(all, g.pick(" ", "", "  ")) + `"`
}

// object returns an object with fields of JSON, in any order.
func (g generator) object(fields map[string]string) string {
	var all []string
	for name, value := range fields {
		if value != "" {
			all = append(all, g.pick("", " ", "\n")+`"`+name+`"`+g.pick(":", " : ")+value)
		}
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return "{" + strings.Join(all, g.pick(",", ", ")) + g.pick("", " ") + "}"
}

func (g generator) maybe(value string) string { return g.pick("", value) }

func (g generator) unknown() string {
	return g.maybe(g.pick(`null`, `[1.0,{"a":1e5}]`, `{"deep":{"er":[[]]}}`, `-0`, `12345678901234567890`))
}

// call is a call of a tool, with its result, in a dialect.
func (g generator) call(path, id string) (items []string) {
	arguments := `{"a": ` + g.text() + `}`
	quoted := string(must(json.Marshal(arguments)))
	switch path {
	case chatPath:
		call := g.object(map[string]string{"id": `"` + id + `"`, "type": `"function"`,
			"function": g.object(map[string]string{"name": `"look"`, "arguments": quoted})})
		return []string{g.object(map[string]string{"role": `"assistant"`, "content": g.pick("null", `""`, g.text()),
			"tool_calls": "[" + call + "]", "x_note": g.unknown()}),
			g.object(map[string]string{"role": `"tool"`, "tool_call_id": `"` + id + `"`, "content": g.text()})}
	case responsesPath:
		return []string{g.object(map[string]string{"type": `"function_call"`, "call_id": `"` + id + `"`, "name": `"look"`,
			"arguments": quoted, "id": g.maybe(`"fc_1"`)}),
			g.object(map[string]string{"type": `"function_call_output"`, "call_id": `"` + id + `"`, "output": g.text()})}
	}
	return []string{g.object(map[string]string{"role": `"assistant"`, "content": "[" + g.object(map[string]string{
		"type": `"tool_use"`, "id": `"` + id + `"`, "name": `"look"`, "input": arguments}) + "]"}),
		g.object(map[string]string{"role": `"user"`, "content": "[" + g.object(map[string]string{"type": `"tool_result"`,
			"tool_use_id": `"` + id + `"`, "content": g.text(), "is_error": g.maybe("true"),
			"cache_control": g.maybe(`{"type":"ephemeral"}`)}) + "]"})}
}

// request returns a request in a dialect.
func (g generator) request(path string) string {
	var items []string
	for i := range 1 + g.IntN(4) {
		part := map[string]string{chatPath: `"text"`, responsesPath: `"input_text"`, messagesPath: `"text"`}[path]
		content := g.pick(g.text(), "["+g.object(map[string]string{"type": part, "text": g.text(),
			"cache_control": g.maybe(`{"type":"ephemeral"}`)})+"]")
		items = append(items, g.object(map[string]string{"role": `"user"`, "content": content, "name": g.maybe(`"ann"`)}))
		if g.IntN(3) == 0 {
			items = append(items, g.call(path, fmt.Sprintf("call_%d", i))...)
		}
		items = append(items, g.object(map[string]string{"role": `"assistant"`, "content": g.text(), "x": g.unknown()}))
	}
	items = append(items, g.object(map[string]string{"role": `"user"`, "content": g.text()}))
	return g.pick("", "\n ") + g.object(map[string]string{"model": `"gpt-4o"`, "stream": g.maybe(g.pick("true", "false")),
		listOf(path): "[" + strings.Join(items, g.pick(",", ",\n")) + "]", "temperature": g.maybe("0.70"),
		"max_tokens": g.maybe("100"), "unknown_field": g.unknown(), "metadata": g.maybe(`{"k":"v"}`),
		"stop": g.maybe(`["\n"]`), "system": map[string]string{messagesPath: g.maybe(g.text())}[path]}) + g.pick("", "\n")
}

// Whatever a client sends, in the mode observe the provider gets its bytes, and the client those of the provider's
// answer.
func TestGeneratedRequestsPassTheGateway(t *testing.T) {
	t.Parallel()
	for _, path := range []string{chatPath, responsesPath, messagesPath} {
		g, made := newGateway(t), generator{rand.New(rand.NewPCG(5, 4))} //nolint:gosec // the same requests each time
		g.provider.answer = func(w http.ResponseWriter, asked sentRequest) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"unreadable":%d, "b" : 1.50}`, asked.n)
		}
		for n := range scale.Of(60, 10_000) {
			body := made.request(path)
			if !json.Valid([]byte(body)) {
				t.Fatalf("the test makes no JSON: %s", body)
			}
			r := g.send(path, body, "X-Loci-Mode", "observe")
			want := fmt.Sprintf(`{"unreadable":%d, "b" : 1.50}`, n+1)
			if asked := g.provider.last(); r.Code != http.StatusOK || r.Text != want || asked.body != body {
				t.Fatalf("%s: status %d, sent\n%s\nand the provider gets\n%s\nand the client\n%s", path, r.Code, body, asked.body,
					r.Text)
			}
		}
	}
}
