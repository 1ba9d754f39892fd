package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
)

// Turn is a prompt that a model was asked with.
type Turn struct {
	Position  int  `json:"position"`      // position of the answer
	Before    int  `json:"tokens_before"` // with what came since the prompt before, when the policy has done nothing yet
	Tokens    int  `json:"tokens"`
	Kept      int  `json:"prefix_kept_tokens"` // tokens at the beginning that did not change since the prompt before
	Compacted bool `json:"compacted,omitempty"`
}

// Result is what a replay measured. Costs are in the currency of the prices.
type Result struct {
	Session       string              `json:"session"`
	Policy        string              `json:"policy"`
	Window        int                 `json:"window_tokens"`
	Ratio         float64             `json:"ratio,omitempty"`
	Turns         []Turn              `json:"turns"`
	Tokens        int                 `json:"tokens"` // of all prompts together
	Most          int                 `json:"most_tokens"`
	CachedCost    float64             `json:"cached_cost"`   // if a provider caches the kept prefix
	Cost          float64             `json:"uncached_cost"` // without a cache
	KeptShare     float64             `json:"prefix_kept_share"`
	Compactions   int                 `json:"compactions"`
	Edits         int                 `json:"edits"`
	ModelCalls    int                 `json:"model_calls"`
	ModelTokens   int                 `json:"model_tokens"`
	ModelFailures int                 `json:"model_failures"` // summaries and lines that the model failed to write
	TooLarge      int                 `json:"too_large"`      // prompts that do not fit the window
	PairErrors    int                 `json:"pair_errors"`    // compactions that were not made: they would lose something
	Breaks        int                 `json:"cache_breaks"`   // prompts that changed what was sent before
	Whole         int                 `json:"whole_tokens"`   // of the last prompt, if it showed everything
	Layers        []Layer             `json:"layers"`         // the policy's steps, in the order in which they run
	Rereads       int                 `json:"rereads"`        // results that were read again when they were out of view
	Reread        []Reread            `json:"reread"`         // the first maxMissing
	Partial       bool                `json:"partial,omitempty"`
	OfQuestions   bool                `json:"evidence_of_questions"`
	Evidence      Evidence            `json:"evidence"` // about questions after the session, if the transcript has any
	Kinds         map[Kind]Evidence   `json:"evidence_by_kind"`
	Sources       map[Source]Evidence `json:"evidence_by_source"`
	Missing       []Missing           `json:"missing"` // the first maxMissing
	Wall          time.Duration       `json:"wall_ns"`

	// Recorded is nil if the recording has no counts.
	Recorded *Recorded `json:"recorded,omitempty" doc:"As the provider counted the recorded prompts, if known."`
}

// Recorded is what the recorded prompts of a session cost, as their provider counted them.
type Recorded struct {
	transcript.Usage
	Cost float64 `json:"cost" doc:"In the currency of the prices, with what was read from a cache and written to it."`
}

// maxMissing bounds the Missing list of a result.
const maxMissing = 500

// stageOf returns the stage of a step; Compact for the settings.
func stageOf(step string) policy.Stage {
	for _, m := range policy.Mechanisms() {
		if m.Name == step {
			return m.Stage
		}
	}
	return policy.Compact
}

// layer returns the layer of a step. A step that the policy does not have is the settings', or shows skills again.
func (r *Result) layer(step string) *Layer {
	i := slices.IndexFunc(r.Layers, func(l Layer) bool { return l.Step == step })
	if i < 0 {
		i = len(r.Layers)
		r.Layers = append(r.Layers, Layer{Step: step, Stage: stageOf(step).String()})
	}
	return &r.Layers[i]
}

// RecordedText is what the recorded prompts cost; a dash if the recording has no counts.
func (r Result) RecordedText() string {
	if r.Recorded == nil {
		return "–"
	}
	return money(r.Recorded.Cost)
}

func money(cost float64) string { return fmt.Sprintf("%.2f", cost) }

// found counts a use by its place, its kind, and the sources of the messages with the entity. by is the position of the
// user.
func (r *Result) found(s *Session, u use, where string, by int) {
	if where != inView && len(r.Missing) < maxMissing {
		newest := s.messages[u.in[len(u.in)-1]]
		r.Missing = append(r.Missing, Missing{Position: by, Entity: u.entity, Kind: u.kind,
			First: s.messages[u.in[0]].Position, Newest: newest.Position, Where: where, Excerpt: excerpt(newest, u.entity)})
	}
	r.Evidence.count(where)
	kind := r.Kinds[u.kind]
	kind.count(where)
	r.Kinds[u.kind] = kind
	for _, source := range Sources {
		if !slices.ContainsFunc(u.in, func(i int) bool { return slices.Contains(s.sources[i], source) }) {
			continue
		}
		evidence := r.Sources[source]
		evidence.count(where)
		r.Sources[source] = evidence
	}
}
