// Package llmtest gives tests a language model: a server with OpenAI's POST /chat/completions that counts tokens,
// overflows like real providers, and fails on demand.
//
// Its files, in order: wordings.go has what known providers say of a request that is too large; llmtest.go is the
// server and its model; faults.go has what answers in place of the model.
package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

// maxRequestBytes bounds a request.
const maxRequestBytes = 64 << 20

// Provider is a server with a model that writes summaries. Set its fields before the first request.
type Provider struct {
	*httptest.Server
	Window   int                // the model's context window in tokens; 0 for no limit
	Wording  Wording            // the answer to a larger request; the zero value is OpenAI's
	Truncate bool               // cut a larger request to the window without an error, as Ollama does
	Answer   func(Asked) string // writes the answer; nil means Summary
	Count    func(r Asked) int  // counts a request's tokens; nil means Tokens of all its texts

	mu     sync.Mutex
	models []string
	asked  []Asked
	next   []Fault
	always Fault
}

// Asked is a request as the server received it.
type Asked struct {
	Model               string          `json:"model"`
	Messages            []Message       `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Body                []byte          `json:"-"`
	Header              http.Header     `json:"-"`
}

// Message is a message of a request.
type Message struct {
	Role       string          `json:"role"`
	Content    *string         `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// Text returns all texts of the request.
func (a Asked) Text() string {
	var b strings.Builder
	for _, m := range a.Messages {
		if m.Content != nil {
			b.WriteString(*m.Content)
		}
		b.Write(m.ToolCalls)
		b.WriteByte('\n')
	}
	b.Write(a.Tools)
	return b.String()
}

// New starts a provider. It stops when the test ends.
func New(t testing.TB) *Provider {
	t.Helper()
	p := Start()
	t.Cleanup(p.Close)
	return p
}

// Start starts a provider; the caller closes it.
func Start() *Provider {
	p := &Provider{}
	p.Server = httptest.NewServer(p)
	return p
}

// BaseURL returns the value for LOCI_LLM_BASE_URL.
func (p *Provider) BaseURL() string { return p.URL + "/v1" }

// Next sets the faults that answer the next requests, one each. A nil fault lets the model answer.
func (p *Provider) Next(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = append(p.next, faults...)
}

// Always sets the fault that answers every request for which Next set none; nil lets the model answer.
func (p *Provider) Always(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always = f
}

// Requests returns the requests received so far, in order.
func (p *Provider) Requests() []Asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Asked(nil), p.asked...)
}

// Take returns the requests received since the last Take, in order, and forgets them.
func (p *Provider) Take() []Asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.asked
	p.asked = nil
	return taken
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		p.listModels(w)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes))
	request := Asked{Header: r.Header, Body: body}
	if err != nil || json.Unmarshal(body, &request) != nil ||
		r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if fault := p.note(request); fault != nil && fault(w, r, request) {
		return
	}
	p.complete(w, request)
}

// listModels answers with the names of SetModels.
func (p *Provider) listModels(w http.ResponseWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.models == nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	var list []map[string]string
	for _, name := range p.models {
		list = append(list, map[string]string{"id": name, "object": "model"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list})
}

// SetModels sets the names of the models that the provider lists. Without names it has no list.
func (p *Provider) SetModels(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.models = names
}

func (p *Provider) note(request Asked) (fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, request)
	if len(p.next) == 0 {
		return p.always
	}
	fault, p.next = p.next[0], p.next[1:]
	return fault
}

func (p *Provider) complete(w http.ResponseWriter, request Asked) {
	sent := p.count(request)
	if p.Window > 0 && sent+max(request.MaxTokens, request.MaxCompletionTokens) > p.Window {
		if !p.Truncate {
			wording := p.Wording
			if wording.Body == "" {
				wording = Wordings[0]
			}
			wording.write(w, p.Window, sent)
			return
		}
		sent = min(sent, p.Window)
	}
	answer := Summary
	if p.Answer != nil {
		answer = p.Answer
	}
	text := answer(request)
	writeCompletion(w, map[string]any{"role": "assistant", "content": text}, "stop", sent, Tokens(text))
}

func (p *Provider) count(asked Asked) int {
	if p.Count != nil {
		return p.Count(asked)
	}
	return Tokens(asked.Text()) + 4*len(asked.Messages)
}

// Tokens counts a text's tokens as the model does: four ASCII characters are one token, any other character is one.
func Tokens(text string) int {
	ascii, others := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+3)/4 + others
}

// Summary is the model's default answer: a sentence with those words of the last message that look like names or
// numbers.
func Summary(asked Asked) string {
	if len(asked.Messages) == 0 || asked.Messages[len(asked.Messages)-1].Content == nil {
		return "There was nothing to summarise."
	}
	var names []string
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(*asked.Messages[len(asked.Messages)-1].Content, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`,;()[]{}<>", r)
	}) {
		word = strings.Trim(word, ".:!?")
		if len(word) >= 4 && !seen[word] && strings.ContainsAny(word, "0123456789/_") && len(names) < 60 {
			seen[word] = true
			names = append(names, word)
		}
	}
	return "I worked through what was asked of me and noted what it was about. Named on the way were: " +
		strings.Join(names, ", ") + "."
}

func writeCompletion(w http.ResponseWriter, message map[string]any, finish string, prompt, output int) {
	writeJSON(w, http.StatusOK, map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output},
	})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may have disconnected
}
