package agent

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// roughly returns a model's factor for a prompt with an unknown composition: the higher one of the latest report's
// factor and the factor of words.
func roughly(c tokens.Calibration) tokens.Factor {
	return max(tokens.Factor(c.Latest), c.Factor(tokens.Composition{tokens.Words: 1}))
}

// calibrationOf reads what an organization's reports of usage say about a model.
func (s *Store) calibrationOf(ctx context.Context, org db.Org, model string) (tokens.Calibration, error) {
	type stored struct {
		Latest     float64             `db:"factor"`
		Regression *tokens.Calibration `db:"regression"` // nil: stored by a version that had one factor
	}
	found, err := db.One[stored](ctx, s.DB, `
		SELECT factor, regression FROM model_factors WHERE org = $1 AND model = $2`, org, model)
	of := tokens.NewCalibration(model)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return of, nil
	case found.Regression != nil:
		of = *found.Regression
	default:
		for class := range of.Factors {
			of.Factors[class] = found.Latest
		}
	}
	return of, err
}

// A provider's count is believed up to mostOfEstimate times our own count, and up to mostOfWindow times the context
// window.
const (
	mostOfEstimate = 10
	mostOfWindow   = 2
)

// calibrate corrects the calibration of a conversation's model by a provider's count of a prompt that ended with the
// message at position. The prompt is the newest one handed out by then, plus the messages since, which are taken to be
// composed like it. Of two simultaneous reports one may be lost; a later report corrects that. A count beyond
// mostOfEstimate and mostOfWindow is not believed.
func (s *Store) calibrate(ctx context.Context, org db.Org, c recall.Conversation, position, reported int) (
	believed bool, err error) {
	type counted struct {
		Prompt  *int                `db:"prompt"` // nil if none was handed out
		Classes *tokens.Composition `db:"classes"`
		Later   int                 `db:"later"` // of the messages after that prompt
		Since   int                 `db:"since"` // of the messages after the previous report
	}
	ours, err := db.One[counted](ctx, s.DB, `
		SELECT prompt, classes, since, coalesce((
			SELECT sum(m.tokens) FROM messages m
			WHERE m.org = $1 AND m.conversation_key = $2 AND m.position > last_position AND m.position <= $3
			      AND m.role <> 'summary' AND NOT m.is_err AND m.purpose = '' AND m.refused IS NULL), 0)::integer AS later
		FROM (
			SELECT coalesce(sum(tokens), 0)::integer AS since FROM messages
			WHERE org = $1 AND conversation_key = $2 AND position > $4 AND position <= $3
			      AND role <> 'summary' AND NOT is_err AND purpose = '' AND refused IS NULL
		) AS said LEFT JOIN LATERAL (
			SELECT (p.tokens ->> 'estimated')::integer AS prompt, p.tokens -> 'classes' AS classes, p.last_position
			FROM prompts p
			WHERE p.org = $1 AND p.conversation_key = $2 AND p.last_position <= $3
			ORDER BY p.seq DESC, p.key DESC
			LIMIT 1
		) AS newest ON true`, org, c.Key, position, c.ReportedPosition)
	if err != nil {
		return false, err
	}
	a, err := s.Agent(ctx, org, c.AgentID)
	if err != nil {
		return false, err
	}
	most := mostOfWindow * a.in(c).AssumedWindow()
	if ours.Prompt == nil {
		return reported <= max(most, mostOfEstimate*ours.Since), nil
	}
	all := *ours.Prompt + ours.Later
	if reported > max(most, mostOfEstimate*all) {
		return false, nil
	}
	of := tokens.Composition{tokens.Words: *ours.Prompt}
	if ours.Classes != nil {
		of = *ours.Classes
	}
	return true, s.learn(ctx, org, a.in(c).model(), of.Scaled(all), reported)
}

// learn corrects a model's calibration by a provider's count of a prompt.
func (s *Store) learn(ctx context.Context, org db.Org, model string, of tokens.Composition, reported int) error {
	known, err := s.calibrationOf(ctx, org, model)
	if err != nil {
		return err
	}
	after, believed := known.After(reported, of, model)
	if !believed {
		return nil
	}
	_, err = s.DB.Exec(ctx, `
		INSERT INTO model_factors (org, model, factor, regression) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org, model) DO UPDATE SET factor = excluded.factor, regression = excluded.regression`,
		org, model, after.Factor(of), chat.Encode(after))
	return db.Error(err)
}

// leastGrowth is the fewest tokens between two recorded prompts that calibrate.
const leastGrowth = 200

// LearnRecorded corrects the calibration of a conversation's model by recorded prompts. It compares the tokens by which
// each prompt is longer than the previous one with the messages between the two. It ignores prompts of other models,
// prompts that became shorter, and those with a result that is too long to be shown whole.
func (s *Store) LearnRecorded(ctx context.Context, org db.Org, c recall.Conversation,
	prompts []recall.RecordedPrompt) error {
	if len(prompts) < 2 {
		return nil
	}
	a, err := s.Agent(ctx, org, c.AgentID)
	if err != nil {
		return err
	}
	model := a.in(c).model()
	prompts = slices.DeleteFunc(slices.Clone(prompts), func(p recall.RecordedPrompt) bool {
		return !sameModel(model, p.Model)
	})
	for i := 1; i < len(prompts); i++ {
		last, next := prompts[i-1], prompts[i]
		if next.Tokens-last.Tokens < leastGrowth {
			continue
		}
		said, err := s.Recall.Between(ctx, org, c, last.Answer, next.Answer-1)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(said, hasClip) {
			continue
		}
		p := Prompt{compose: func(text string) tokens.Composition { return s.Tokens.Compose(model, text) }}
		var of tokens.Composition
		_, total := converted(OpenAI, said, p.tally(&of))
		of[tokens.Frames] += max(total-of.Total(), 0)
		if err := s.learn(ctx, org, model, of, next.Tokens-last.Tokens); err != nil {
			return err
		}
	}
	return nil
}

func hasClip(m recall.Message) bool {
	return slices.ContainsFunc(m.Content, func(p recall.Part) bool { return p.Clip != nil })
}

// sameModel reports whether a provider's name of a model, which may end in the date of a version, names the model of a
// handle.
func sameModel(handle, name string) bool {
	own := strings.ToLower(modelName(handle))
	return own != "" && strings.HasPrefix(strings.ToLower(modelName(name)), own)
}

// tally returns a function that counts tokens like p.count, and adds what it counts to a composition.
func (p *Prompt) tally(of *tokens.Composition) func(text string) int {
	return func(text string) int {
		c := p.compose(text)
		of.Add(c)
		return c.Total()
	}
}

// countSystem counts the parts of a prompt besides its tools and messages. Metadata has what the state has besides
// files and working memory.
func (p *Prompt) countSystem() {
	t, text := &p.counted, p.system
	p.ofSystem = tokens.Composition{}
	count := p.tally(&p.ofSystem)
	t.System, t.Blocks, t.Rules, t.Metadata = count(text.system), count(text.blocks), count(text.rules), count(text.about)
	t.Skills = count(text.skills) + text.preloadedTokens(p.count)
	t.Directories, t.Working = p.count(text.directories), p.count(text.working)
	t.Metadata += max(text.stateTokens(p.count)-t.Directories-t.Working, 0)
	of := p.ofTools
	of.Add(p.ofSystem)
	of.Add(p.compose(text.state()))
	for _, m := range text.preloaded {
		of.Add(p.compose(m.Text()))
	}
	p.factor = p.calibration.Factor(of)
}

// countAll counts the whole prompt, when all its parts are counted.
func (p *Prompt) countAll() {
	t := &p.counted
	t.Total = t.Tools + t.instructions() + t.Summary + t.Messages
	t.Classes = p.ofTools
	t.Classes.Add(p.ofSystem)
	t.Classes.Add(p.ofMessages)
	t.Classes[tokens.Frames] += max(t.Total-t.Classes.Total(), 0)
	p.factor = p.calibration.Factor(t.Classes)
}

// fullShare is a share of the window. From this size on, our own count of a prompt counts if the provider's is lower.
const fullShare = 0.95

// total returns the best known count of a prompt. It is the provider's report about an earlier prompt plus our count of
// what came after it; or, without a usable report, our count of what would be sent, times the model's factor. A report
// is not used if it is less than half our count, because the provider must have cut the prompt. It is not used either
// if it is below our count and our count fills the window, because files, blocks or a reverted compaction may have made
// the prompt longer since. Messages after a report count with their own factor; if no prompt of the model was reported
// that Loci handed out, with that of the report, at most 2.
func (p Prompt) total() int {
	c, ours := p.Conversation, p.factor.Of(p.counted.Total)
	full := float64(ours) >= fullShare*float64(p.window())
	if p.unread.Count > 0 || c.Reported < ours/2 || c.Reported < ours && full {
		return ours
	}
	later := slices.DeleteFunc(slices.Clone(p.Messages), func(m recall.Message) bool {
		return m.Role == recall.Summary || m.Position <= c.ReportedPosition
	})
	var of tokens.Composition
	_, after := converted(p.format, later, p.tally(&of))
	of[tokens.Frames] += max(after-of.Total(), 0)
	factor := p.calibration.Factor(of)
	if before := p.counted.Total - after; before > 0 && p.calibration.Reports == 0 {
		factor = max(factor, min(tokens.Factor(c.Reported)/tokens.Factor(before), tokens.MostFactor))
	}
	return c.Reported + factor.Of(after)
}
