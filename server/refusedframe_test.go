package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// If the provider refuses a text in the agent's own memory or instructions, no message leaves the view. The failure
// names the place. After the text is changed, the model gets everything that was said meanwhile.
func TestWhatIsRefusedOutsideOfTheMessagesHidesNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ bad, mended, place string }{
		"a block": {`/core-memory/blocks/human {"value":"POISON"}`, `/core-memory/blocks/human {"value":"Ada."}`,
			"memory blocks"},
		"the system prompt": {` {"system":"POISON"}`, ` {"system":"Be kind."}`, "system prompt"},
	} {
		for _, handle := range handles {
			for form, refusal := range map[string]modeltest.Answer{"refused": badRequest,
				"withheld": {Text: "I start", Finish: withholds(handle)}} {
				t.Run(name+" "+handle+" "+form, func(t *testing.T) {
					t.Parallel()
					r := newRunner(t, `{"name":"a","model":"`+handle+`","memory_blocks":[{"label":"human","value":"Ada."}]}`)
					r.says("Warm")
					change := func(request string) {
						path, body, _ := strings.Cut(request, " ")
						r.must("PATCH", "/v1/agents/"+r.agent+path, body)
					}
					change(c.bad)
					r.failsAt("POISON", refusal)
					for n := range 3 {
						got := r.says(fmt.Sprintf("Next %d.", n))
						if got.Error == nil || !strings.Contains(got.Error.Message, c.place) {
							t.Errorf("got %d %+v, want a failure that names the %s", got.Code, got.Error, c.place)
						}
					}
					items, _ := r.stream(r.path()+"/stream", `{"input":"Next 3.","stream_tokens":true}`)
					if said := fmt.Sprint(items); !strings.Contains(said, c.place) {
						t.Errorf("the stream is %v, want one that names the %s", items, c.place)
					}
					change(c.mended)
					checkSaid(t, "after", itemTexts(r.says("After").Messages), []string{"assistant_message Fine."})
					r.hasAsked("Warm", "Next 0.", "Next 1.", "Next 2.", "Next 3.", "After")
				})
			}
		}
	}
}

// withholds returns the reason with which a provider ends a withheld answer.
func withholds(handle string) string {
	if strings.HasPrefix(handle, "anthropic/") {
		return "refusal"
	}
	return "content_filter"
}

// hasAsked checks that the model's last prompt contains each of some texts once.
func (r runner) hasAsked(texts ...string) {
	r.t.Helper()
	asked := r.asked()
	for _, text := range texts {
		if strings.Count(asked, text) != 1 {
			r.t.Errorf("%q is not in the prompt once: %s", text, asked)
		}
	}
}

// The same holds if the model's own call stored the text: the error about the turn's later prompt also names the block.
func TestWhatAModelStoresOfItsOwnAndIsRefusedHidesNoTurn(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		r := newRunner(t, `{"name":"a","model":"`+handle+`","tools":["core_memory_append"],
			"memory_blocks":[{"label":"human","value":"Ada."}]}`)
		r.says("Warm")
		r.failsAt("POISON", badRequest)
		r.model.Says(callOf("c1", "core_memory_append", `{"label":"human","content":"POISON"}`))
		for _, text := range []string{"Remember", "Next 0.", "Next 1."} {
			if got := r.says(text); got.Error == nil || !strings.Contains(got.Error.Message, "memory blocks") {
				t.Errorf("%s %s: got %d %+v", handle, text, got.Code, got.Error)
			}
		}
		r.must("PATCH", "/v1/agents/"+r.agent+"/core-memory/blocks/human", `{"value":"Ada."}`)
		checkSaid(t, "after", itemTexts(r.says("After").Messages), []string{"assistant_message Fine."})
		r.hasAsked("Warm", "Next 0.", "Next 1.", "After")
	}
}

// If the provider refuses the agent's instructions, even the agent's first message stays in the view.
func TestAFirstMessageStaysIfTheInstructionsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","system":"POISON"}`)
	r.failsAt("POISON", badRequest)
	r.says("First")
	r.must("PATCH", "/v1/agents/"+r.agent, `{"system":"Be kind."}`)
	r.says("Second")
	r.hasAsked("First", "Second")
}

// If the provider refuses a text in an open file, the agent goes on. It is asked without the texts of open files, and
// its model is told. Closing the file ends this.
func TestARefusedOpenFileHoldsNoAgent(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for name, fault := range map[string]modeltest.Answer{"refused": badRequest, "failed": failing(500, "Oh")} {
			t.Run(handle+" "+name, func(t *testing.T) {
				r := newOwnRunner(t, `{"name":"a","model":"`+handle+`","tools":["open_files","archival_memory_insert"]}`)
				r.work()
				folder := r.made("/v1/folders", `{"name":"Papers"}`)
				file := r.uploaded(folder, "doc.md", "hello POISON\n")
				r.must("PATCH", "/v1/agents/"+r.agent+"/folders/attach/"+folder, "")
				r.says("Warm")
				r.failsAt("POISON", fault)
				r.model.Says(callOf("c1", "open_files", `{"file_requests":[{"file_name":"Papers/doc.md"}]}`))
				checkSaid(t, "the first", itemTexts(r.says("Open it").Messages)[2:], []string{"assistant_message Fine."})
				checkSaid(t, "the last", itemTexts(r.says("Last").Messages), []string{"assistant_message Fine."})
				r.hasAsked("Warm", "Open it", "Last")
				if asked := r.asked(); !strings.Contains(asked, "left out of this prompt") {
					t.Errorf("the model was asked %s", asked)
				}
				if refused := r.refusedItems(); len(refused) > 0 {
					t.Errorf("refused are %q", refused)
				}
				before := len(r.model.Requests())
				checkSaid(t, "one more", itemTexts(r.says("Once more").Messages), []string{"assistant_message Fine."})
				if n := len(r.model.Requests()) - before; n != 1 || !strings.Contains(r.asked(), "left out of this prompt") {
					t.Errorf("one more turn asked %d times, at last %s", n, r.asked())
				}
				r.must("PATCH", "/v1/agents/"+r.agent+"/files/close-all", "")
				r.says("Closed")
				r.hasAsked("Warm", "Open it", "Last", "Closed")
				before = len(r.model.Requests())
				r.must("PATCH", "/v1/agents/"+r.agent+"/files/"+file+"/open", "")
				r.says("Opened")
				if n := len(r.model.Requests()) - before; n < 3 {
					t.Errorf("with the file opened anew a turn asked %d times", n)
				}
				mended := r.upload(folder, "?duplicate_handling=replace", "doc.md", "hello mended\n")
				r.awaitFile(folder, fields(t, mended.Text)["id"].(string))
				r.says("Mended")
				if asked := r.asked(); !strings.Contains(asked, "hello mended") ||
					strings.Contains(asked, "left out of this prompt") {
					t.Errorf("with a mended file the model was asked %s", asked)
				}
			})
		}
	}
}

// If a provider repeatedly fails because of a memory block without saying why, the block is named. A provider that is
// down is not mistaken for that. Neither is asked much more often.
func TestAFailureThatRepeatsNamesItsPlace(t *testing.T) {
	t.Parallel()
	for _, handle := range handles {
		for name, c := range map[string]struct {
			bad, words string
			probes     int
		}{
			"a block":   {"POISON", "answers one without the agent's memory: its memory blocks", 3},
			"an outage": {"role", "Loci cannot tell which", 2},
		} {
			t.Run(handle+" "+name, func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, `{"name":"a","model":"`+handle+`","memory_blocks":[{"label":"human","value":"POISON"}]}`)
				r.says("Warm")
				r.failsAt(c.bad, failing(500, "Oh"))
				if got := r.says("First"); got.Error == nil || strings.Contains(got.Error.Message, c.words) {
					t.Errorf("at first: got %d %+v", got.Code, got.Error)
				}
				before := len(r.model.Requests())
				got := r.says("Second")
				if got.Error == nil || !strings.Contains(got.Error.Message, c.words) {
					t.Errorf("then: got %d %+v, want %q", got.Code, got.Error, c.words)
				}
				if n := len(r.model.Requests()) - before; n > 3+c.probes {
					t.Errorf("the model was asked %d times", n)
				}
				r.failsAt("NOTHING", failing(500, "Oh"))
				checkSaid(t, "after", itemTexts(r.says("After").Messages), []string{"assistant_message Fine."})
				r.hasAsked("Warm", "First", "Second", "After")
			})
		}
	}
}
