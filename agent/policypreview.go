package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// PolicyTarget is a prompt to preview under other policies, at a position in the agent's log.
type PolicyTarget struct {
	PromptTarget
	AtSeq int64 // the newest event that the prompt knows of; 0: all events are known
}

// Prices are a provider's prices: of a million tokens, and as factors of that, of tokens read from and written to its
// cache.
type Prices struct {
	Input float64 `json:"input_per_million" required:"false" minimum:"0" maximum:"1000000"`
	Read  float64 `json:"cache_read_share" required:"false" minimum:"0" maximum:"10"`
	Write float64 `json:"cache_write_share" required:"false" minimum:"0" maximum:"10"`
}

// UnmarshalJSON implements json.Unmarshaler. If prices are absent, it sets DefaultPrices.
func (p *Prices) UnmarshalJSON(raw []byte) error {
	type fields Prices
	f := fields(DefaultPrices())
	err := json.Unmarshal(raw, &f)
	*p = Prices(f)
	return err
}

// DefaultPrices returns the prices of a common provider, in dollars.
func DefaultPrices() Prices { return Prices{Input: 3, Read: 0.1, Write: 1.25} }

// PolicyPreview shows how a policy would change a prompt.
type PolicyPreview struct {
	Policy       string           `json:"policy"`
	Tokens       Tokens           `json:"tokens" doc:"Of the prompt's parts, as Loci counts them."`
	Before       int              `json:"tokens_before" doc:"Of the prompt without the policy's edits."`
	Steps        []plan.StepCount `json:"steps" doc:"What the edits of each step save."`
	Edits        []clip.Edit      `json:"edits"`
	FirstChanged int              `json:"first_changed" doc:"Position of the first message that changes; 0: none."`
	Compaction   *plan.Plan       `json:"compaction" doc:"That would come before the prompt; null: none."`
	ModelCalls   int              `json:"model_calls" doc:"At least, for a summary; 0 without a compaction."`
	Cost         PolicyCost       `json:"cost"`
}

// PolicyCost predicts a prompt's cost, in the currency of the prices.
type PolicyCost struct {
	Kept      int     `json:"prefix_kept_tokens" doc:"Before the first change, which a warm cache still has."`
	Rewritten int     `json:"rewritten_tokens" doc:"After it, which the cache takes again."`
	Next      float64 `json:"next_prompt" doc:"With a warm cache of the prompt without the policy's changes."`
	Later     float64 `json:"later_prompt" doc:"Read whole from the cache."`
	Unchanged float64 `json:"unchanged_prompt" doc:"The prompt without the changes, read whole from the cache."`
	Uncached  float64 `json:"uncached_prompt"`
	BreakEven float64 `json:"break_even_prompts" doc:"Prompts until the changes have paid for themselves; 0: at once."`
}

// PreviewPolicies returns what each of these policies would do to a prompt, together with the policies of the farther
// places. It stores nothing and asks no model: if a compaction is due, its summary is extracted. Earlier edits by
// policies are not in its view, but messages that compactions hid before the position stay hidden. Memory and files are
// the current ones.
func (s *Store) PreviewPolicies(ctx context.Context, org db.Org, target PolicyTarget, policies []json.RawMessage) (
	all []PolicyPreview, err error) {
	without, v, err := s.withoutPolicy(ctx, org, target)
	if err != nil {
		return nil, err
	}
	for _, proposed := range policies {
		p, view := without, v
		if settings := inSettings(proposed); showDataInPart(settings) { // its prompt has another tool
			changed := target
			changed.Compaction = settings
			if p, view, err = s.withoutPolicy(ctx, org, changed); err != nil {
				return nil, err
			}
		}
		out, _, _, err := s.preview(ctx, org, p, view, policyOver{proposed, target.AnswerPending})
		if err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	return all, nil
}

// PromptUnder returns what a model would be sent under a policy, planned like PreviewPolicies; nil is the policy in
// force.
func (s *Store) PromptUnder(ctx context.Context, org db.Org, target PolicyTarget, proposed json.RawMessage) (
	StoredPrompt, error) {
	if len(proposed) > 0 {
		target.Compaction = inSettings(proposed)
	}
	without, v, err := s.withoutPolicy(ctx, org, target)
	if err != nil {
		return StoredPrompt{}, err
	}
	_, p, _, err := s.preview(ctx, org, without, v, policyOver{proposed, target.AnswerPending})
	if err != nil {
		return StoredPrompt{}, err
	}
	return p.storable()
}

// Supposed is a policy, a window and a share of the prompt that an overview supposes. Zero values suppose nothing.
type Supposed struct {
	Policy json.RawMessage
	Window int     // tokens
	Ratio  float64 // share of the prompt without edits; above it, the oldest messages are summarized
}

// OverviewUnder returns the overview that a conversation would have with another policy, window or share of its tokens.
// It is planned like PreviewPolicies.
func (s *Store) OverviewUnder(ctx context.Context, org db.Org, target PromptTarget, suppose Supposed) (Overview,
	[]recall.Message, error) {
	target.Window = suppose.Window
	if len(suppose.Policy) > 0 {
		target.Compaction = inSettings(suppose.Policy)
	}
	p, v, err := s.withoutPolicy(ctx, org, PolicyTarget{PromptTarget: target})
	if err != nil {
		return Overview{}, nil, err
	}
	if suppose.Ratio == 0 {
		_, under, after, err := s.preview(ctx, org, p, v, policyOver{policy: suppose.Policy})
		if err != nil {
			return Overview{}, nil, err
		}
		under.Messages = after.Messages
		return s.overviewOf(ctx, org, under)
	}
	most := max(int(suppose.Ratio*float64(p.Tokens.Total)), 1)
	under := p
	for upTo := range policy.Within(most) {
		_, next, after, err := s.preview(ctx, org, p, v, policyOver{policy: upTo})
		if err != nil {
			return Overview{}, nil, err
		}
		if under, under.Messages = next, after.Messages; under.Tokens.Total <= most {
			break
		}
	}
	return s.overviewOf(ctx, org, under)
}

// withoutPolicy returns the prompt without edits by policies, and its view.
func (s *Store) withoutPolicy(ctx context.Context, org db.Org, target PolicyTarget) (p Prompt, v clip.View,
	err error) {
	if p, err = s.assembleUntil(ctx, org, target); err != nil {
		return p, v, err
	}
	v, err = store.ViewOf(p.Conversation, p.Messages, p.task(plan.Pruned).Overhead)
	if err != nil {
		return p, v, err
	}
	v.Edits = slices.DeleteFunc(v.Edits, func(e clip.Edit) bool { return e.Step != "" })
	p.show(v, target.AnswerPending)
	return p, v, nil
}

// inSettings returns compaction settings with this policy, which is JSON.
func inSettings(of json.RawMessage) json.RawMessage { return fmt.Appendf(nil, `{"policy":%s}`, of) }

// policyOver is a policy to preview, together with the policies of the farther places.
type policyOver struct {
	policy        json.RawMessage
	answerPending bool
}

// preview returns what a policy does to a prompt and its view, the prompt under it, and its view.
func (s *Store) preview(ctx context.Context, org db.Org, p Prompt, v clip.View, over policyOver) (out PolicyPreview,
	under Prompt, after clip.View, err error) {
	if len(over.policy) > 0 {
		if err := s.readPolicy(ctx, org, inSettings(over.policy), &p); err != nil {
			return out, p, v, err
		}
	}
	moment, err := s.moment(ctx, org, p)
	if err != nil {
		return out, p, v, err
	}
	out.Before = p.Tokens.Total
	after, edits := p.policy.Prune(v, moment)
	out.Steps = append([]plan.StepCount{}, plan.Pruning{Edits: edits, Before: v}.Steps()...)
	out.Edits = append([]clip.Edit{}, edits...)
	if after, err = p.compacted(ctx, after, moment, &out); err != nil {
		return out, p, v, err
	}
	p.show(after, over.answerPending)
	out.Policy, out.Tokens = p.policy.Name(), p.Tokens
	out.FirstChanged = firstChanged(edits, out.Compaction)
	out.Cost.Kept = p.prefix(v, out.FirstChanged)
	return out, p, after, nil
}

// show replaces what the prompt shows of its conversation.
func (p *Prompt) show(v clip.View, answerPending bool) {
	p.counted.Summary, p.summary, p.placeholders = 0, "", 0
	p.convert(v, answerPending)
	p.Tokens = p.counted.in(p.factor.Of(p.counted.Total))
}

// compacted returns the view after the compaction that is due under the policy, with an extracted summary.
func (p *Prompt) compacted(ctx context.Context, v clip.View, moment policy.Moment, out *PolicyPreview) (
	clip.View, error) {
	used := clip.Estimate(v)
	due, _ := plan.Check(used, v.Window, v.Open(), p.settings, plan.TriggerState{})
	if p.policy.Triggers() {
		moment.Tokens = used
		due, _ = p.policy.Check(v, moment, plan.TriggerState{})
		moment.Tokens = 0
	}
	if !due.Compact {
		return v, nil
	}
	plan, err := p.policy.PlanAndRestore(v, moment)
	if errors.Is(err, db.ErrInvalid) { // nothing can leave, or the rest does not fit: the preview has no compaction
		return v, nil
	}
	if err != nil {
		return v, err
	}
	out.Compaction = &plan
	if plan.NeedsModel {
		out.ModelCalls = 1
	}
	if plan.Evicted == 0 {
		return plan.View(v, nil), nil
	}
	summary, err := summary.Summarize(ctx, plan.Evict(v), p.settings, nil)
	return plan.View(v, &summary), err
}

// firstChanged returns the position of the first message that edits or a compaction show differently; 0 if there is
// none.
func firstChanged(edits []clip.Edit, plan *plan.Plan) int {
	first := 0
	if plan != nil {
		first = plan.FirstChanged
	}
	for _, e := range edits {
		if first == 0 || e.Position < first {
			first = e.Position
		}
	}
	return first
}

// prefix returns a prompt's tokens before the message at position; for position 0, all of them.
func (p *Prompt) prefix(v clip.View, position int) int {
	n := plan.FixedTokens(v)
	for i, tokens := range plan.MessageTokens(v) {
		if position == 0 || v.Messages[i].Position < position {
			n += tokens
		}
	}
	return p.factor.Of(n)
}

// Price predicts what the preview's prompt costs.
func (out *PolicyPreview) Price(prices Prices) {
	c, each := &out.Cost, prices.Input/1e6
	total := out.Tokens.Total
	c.Kept = min(c.Kept, total)
	c.Rewritten = total - c.Kept
	if out.FirstChanged == 0 {
		c.Kept, c.Rewritten = total, 0
	}
	c.Next = each * (float64(c.Kept)*prices.Read + float64(c.Rewritten)*prices.Write)
	c.Later, c.Unchanged = each*float64(total)*prices.Read, each*float64(out.Before)*prices.Read
	c.Uncached = each * float64(total)
	if saved := c.Unchanged - c.Later; saved > 0 && c.Next > c.Unchanged {
		c.BreakEven = (c.Next - c.Later) / saved
	}
}

// assembleUntil assembles a prompt with a view that ends at a position of the agent's log.
func (s *Store) assembleUntil(ctx context.Context, org db.Org, target PolicyTarget) (p Prompt, err error) {
	if target.AtSeq == 0 {
		p, err = s.assembleAt(ctx, org, target.PromptTarget)
		p.Conversation.Reported = 0
		return p, err
	}
	c, err := s.Recall.Conversation(ctx, org, target.AgentID, target.Conversation)
	if err != nil {
		return p, err
	}
	position, err := db.One[int](ctx, s.DB, `
		SELECT coalesce(max(position), 0) FROM messages
		WHERE org = $1 AND conversation_key = $2 AND seq <= $3 AND role <> 'summary'`, org, c.Key, target.AtSeq)
	if err != nil {
		return p, err
	}
	if position == 0 {
		return p, db.NotFound("The conversation had no message at position %d of the agent's events", target.AtSeq)
	}
	view, err := s.Compaction.ViewAt(ctx, org, c, position)
	if err != nil {
		return p, err
	}
	target.view, target.last = &view, &position
	if p, err = s.assembleAt(ctx, org, target.PromptTarget); err != nil {
		return p, err
	}
	p.Seq, p.Conversation.Reported = target.AtSeq, 0
	return p, nil
}

// SentAt returns the prompt that was handed out at a seq, or before it if no event since then can change a prompt.
// ErrNotFound if there is none, or none in the target's format.
func (s *Store) SentAt(ctx context.Context, org db.Org, target PromptTarget, seq int64) (StoredPrompt, error) {
	p, err := s.PromptAt(ctx, org, target.AgentID, target.Conversation, seq)
	if err != nil {
		return p, err
	}
	changed, err := db.One[bool](ctx, s.DB, `
		SELECT EXISTS (
			SELECT FROM events WHERE org = $1 AND agent_id = $2 AND seq > $3 AND seq <= $4 AND type <> $5)`,
		org, target.AgentID, p.Seq, seq, event.PromptsGrowing)
	if err == nil && (changed || target.Format != "" && p.Format != target.Format) {
		err = db.NotFound("The prompt at position %d of the agent's events was not handed out", seq)
	}
	return p, err
}
