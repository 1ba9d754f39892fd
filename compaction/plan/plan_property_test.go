package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// outcomes count how the plans of many lives ended, to make sure that every case occurs.
type outcomes struct {
	sync.Mutex
	plans, clips, kept, nothing, tooBig, relaxed, again int
}

func (o *outcomes) count(add func()) { o.Lock(); defer o.Unlock(); add() }

// ledger says for each message of a life whether it is in the view or was given to the summarizer.
type ledger map[int]bool

// live makes up a life of about n messages and compacts it again and again. It returns the first property that does not
// hold.
func live(seed uint64, n int, o *outcomes) error {
	h := newHistory(seed)
	h.big = 200 + h.IntN(3500)
	s := h.wide()
	h.live(n)
	v := h.window()
	if h.IntN(8) == 0 && len(h.messages) > 0 { // one message is larger than the window
		h.big = v.Window + 100
		h.enlarge()
	}
	gone := ledger{}
	for round := range 3 {
		if h.IntN(3) == 0 && len(v.Messages) > 0 {
			last := h.IntN(len(v.Messages))
			part := v
			part.Messages = v.Messages[:last+1]
			v.Usage = &clip.Usage{PromptTokens: int(float64(clip.Counted(part)) * (0.4 + 2*h.Float64())),
				Position: v.Messages[last].Position}
		}
		after, err := compact(h, v, s, gone, o)
		if err != nil {
			return fmt.Errorf("round %d, %+v: %w", round, s, err)
		}
		if err := accounted(h, after, gone); err != nil {
			return fmt.Errorf("round %d, %+v: %w", round, s, err)
		}
		v = after
		old := len(h.messages)
		h.live(1 + h.IntN(min(max(n/2, 1), 200)))
		v.Messages = append(slices.Clone(v.Messages), h.messages[old:]...)
		v.Usage = nil
	}
	return nil
}

// enlarge makes one message as long as a message may be.
func (h *history) enlarge() {
	m := &h.messages[h.IntN(len(h.messages))]
	for i := range m.Content {
		if m.Content[i].Type != recall.ToolCall {
			m.Content[i].Text = h.saying(h.big)
			break
		}
	}
	m.Tokens = tokensOf(m.Content)
}

// accounted reports whether each message of the life is either visible or with the summarizer, but not both.
func accounted(h *history, v clip.View, gone ledger) error {
	visible := ledger{}
	for _, m := range v.Messages {
		if visible[m.Position] {
			return fmt.Errorf("message %d is in the view twice", m.Position)
		}
		visible[m.Position] = true
	}
	for _, m := range h.messages {
		if visible[m.Position] == gone[m.Position] {
			return fmt.Errorf("message %d is visible: %v, summarised: %v", m.Position, visible[m.Position], gone[m.Position])
		}
	}
	return nil
}

// compact plans until there is nothing to do, and checks each step.
func compact(h *history, v clip.View, s plan.Settings, gone ledger, o *outcomes) (clip.View, error) {
	for step := range 60 {
		p, err := plan.MakePlan(v, s)
		nothing, isNothing := errors.AsType[*plan.Nothing](err)
		big, isBig := errors.AsType[*plan.TooBig](err)
		switch {
		case isNothing:
			o.count(func() { o.nothing++ })
			return v, soundNothing(v, s, nothing)
		case isBig:
			o.count(func() { o.tooBig++ })
			return v, soundTooBig(v, s, big)
		case err != nil:
			return v, err
		}
		after, err := apply(h, v, s, p, gone)
		if err != nil {
			return v, fmt.Errorf("step %d, %+v: %w", step, p, err)
		}
		o.count(func() {
			o.plans++
			o.clips += min(len(p.Edits), 1)
			o.kept += len(p.Kept)
			o.again += min(step, 1)
			if p.Goal > int(s.Goal*float64(v.Window)) {
				o.relaxed++
			}
		})
		v = after
	}
	return v, fmt.Errorf("planning does not come to an end")
}

// apply carries out a plan with a made-up summary, and checks that it does what it says.
func apply(h *history, v clip.View, s plan.Settings, p plan.Plan, gone ledger) (clip.View,
	error) {
	if again, err := plan.MakePlan(v, s); err != nil || !reflect.DeepEqual(p, again) {
		return v, fmt.Errorf("the same view has another plan: %+v, %w", again, err)
	}
	evicted := p.Evict(v)
	summary := made(h, p, evicted)
	after := p.View(v, summary)
	limit := int(s.Trigger*float64(v.Window) + 1e-9)
	switch {
	case p.Before != clip.Estimate(v):
		return v, fmt.Errorf("it says that there are %d tokens before; there are %d", p.Before, clip.Estimate(v))
	case p.After >= p.Before && p.Evicted == 0:
		return v, fmt.Errorf("no progress")
	case v.Usage == nil && p.Before > p.Goal && p.After >= p.Before:
		return v, fmt.Errorf("it takes no fewer tokens")
	case p.After > p.Goal:
		return v, fmt.Errorf("it does not reach its own goal")
	case v.Usage == nil && p.Goal > max(limit+plan.LeastSummary, int(s.Goal*float64(v.Window)+1e-9)):
		return v, fmt.Errorf("its goal is above the trigger, at %d", limit)
	case v.Usage == nil && clip.Estimate(after) > p.After:
		return v, fmt.Errorf("after it there are %d tokens", clip.Estimate(after))
	case p.Evicted+p.Stay != len(v.Messages) || len(evicted.Messages) != p.Evicted || len(after.Messages) != p.Stay:
		return v, fmt.Errorf("of %d messages %d leave and %d stay", len(v.Messages), len(evicted.Messages),
			len(after.Messages))
	case p.NeedsModel != (p.Evicted > 0) || p.Self != (p.NeedsModel && strings.HasPrefix(string(s.Mode), "self")) ||
		p.Self != (evicted.Self != nil):
		return v, fmt.Errorf("who is to summarise")
	case p.Evicted > 0 && evicted.Previous != v.Summary:
		return v, fmt.Errorf("the summary before is not carried along")
	case v.Summary != nil && p.First <= v.Summary.To:
		return v, fmt.Errorf("the cut goes back")
	case after.Fixed != v.Fixed || after.Window != v.Window || after.Usage != nil:
		return v, fmt.Errorf("the fixed parts change")
	}
	if err := plan.CheckNothingLost(v, evicted, after); err != nil {
		return v, err
	}
	for _, check := range []func() error{
		func() error { return pairs(v, after) },
		func() error { return newestUser(v, after) },
		func() error { return newestResults(v, after) },
		func() error { return readable(after) },
		func() error { return changesFrom(v, after, p) },
	} {
		if err := check(); err != nil {
			return v, err
		}
	}
	// If the view is above the goal, the next plan may only bring it down to the goal, and only because the summary was
	// shorter than planned.
	goal := int(s.Goal*float64(v.Window) + 1e-9)
	if size := clip.Estimate(after); size <= goal || size <= limit && v.Usage == nil {
		if again, err := plan.MakePlan(after, s); !isNothing(err) && (size <= goal || again.After > goal) {
			return v, fmt.Errorf("what was compacted is planned again: %+v, %w", again, err)
		}
	}
	for _, m := range evicted.Messages {
		if gone[m.Position] {
			return v, fmt.Errorf("message %d is summarised twice", m.Position)
		}
		gone[m.Position] = true
	}
	return after, nil
}

func isNothing(err error) bool {
	_, ok := errors.AsType[*plan.Nothing](err)
	return ok
}

// made returns a summary of what left, as long as allowed or shorter.
func made(h *history, p plan.Plan, evicted clip.Evicted) *clip.Summary {
	if p.Evicted == 0 {
		return nil
	}
	s := &clip.Summary{From: p.From, To: p.To, FromSeq: p.FromSeq, ToSeq: p.ToSeq,
		Text: tokens.Prefix(strings.Repeat([]string{"tea ", "茶"}[p.To%2], p.Budget), h.IntN(p.Budget+1))}
	if previous := evicted.Previous; previous != nil {
		s.From, s.FromSeq = min(s.From, previous.From), min(s.FromSeq, previous.FromSeq)
		s.To, s.ToSeq = max(s.To, previous.To), max(s.ToSeq, previous.ToSeq)
	}
	s.Tokens = clip.SummaryTokens(*s)
	return s
}

// pairs checks that each result still has its call, unless it is late, and each call its result. Repeated ids are left
// to CheckNothingLost.
func pairs(before, after clip.View) error {
	type pair struct {
		call, result int
		late         bool
	}
	all, wentOn := map[string]pair{}, 0
	for i, m := range before.Messages {
		sameStep := i > 0 && m.StepID != nil && before.Messages[i-1].StepID != nil &&
			*m.StepID == *before.Messages[i-1].StepID && before.Messages[i-1].Role == recall.Assistant
		if m.Role == recall.User || m.Role == recall.Assistant && !sameStep {
			wentOn = m.Position
		}
		for _, p := range m.Content {
			was := all[p.CallID]
			switch p.Type {
			case recall.ToolCall:
				was.call = m.Position
			case recall.ToolReturn:
				was.result, was.late = m.Position, was.call < wentOn
			}
			all[p.CallID] = was
		}
	}
	stays := map[int]bool{}
	for _, m := range after.Messages {
		stays[m.Position] = true
	}
	for id, p := range all {
		if id != "" && id != "call_0" && p.call > 0 && p.result > 0 && stays[p.call] != stays[p.result] &&
			(stays[p.call] || !p.late) {
			return fmt.Errorf("call %s at %d is parted from its result at %d", id, p.call, p.result)
		}
	}
	return nil
}

func newestUser(before, after clip.View) error {
	for _, m := range slices.Backward(before.Messages) {
		if m.Role != recall.User {
			continue
		}
		i := slices.IndexFunc(after.Messages, func(a recall.Message) bool { return a.Position == m.Position })
		if i < 0 || !reflect.DeepEqual(after.Messages[i], m) ||
			slices.ContainsFunc(after.Edits, func(c clip.Edit) bool { return c.Position == m.Position }) {
			return fmt.Errorf("the newest message of the user, at %d, is not as it was", m.Position)
		}
		return nil
	}
	return nil
}

// newestResults checks that the newest calls stay with their results, in this order, until the model answers or the
// user goes on.
func newestResults(before, after clip.View) error {
	stays := map[string]bool{}
	for _, m := range after.Messages {
		stays[m.ID] = true
	}
	ids := map[string]bool{}
	newest := len(before.Messages) - 1
	for ; newest >= 0 && before.Messages[newest].Role != recall.Assistant; newest-- {
	}
	if newest < 0 {
		return nil
	}
	for _, p := range before.Messages[newest].Content {
		ids[p.CallID] = p.Type == recall.ToolCall
	}
	results, last, answered := before.Messages[newest:], 0, map[string]bool{}
	for i, m := range results {
		for _, p := range m.Content {
			if p.Type == recall.ToolReturn && ids[p.CallID] && !answered[p.CallID] { // repetitions are orphans
				last, answered[p.CallID] = i, true
			}
		}
	}
	if slices.ContainsFunc(results[last+1:], func(m recall.Message) bool { return m.Role == recall.User }) {
		return nil
	}
	for _, m := range results {
		for _, p := range m.Content {
			if p.CallID != "" && ids[p.CallID] && !stays[m.ID] {
				return fmt.Errorf("message %d, of call %s that the model has not answered, leaves", m.Position, p.CallID)
			}
		}
	}
	return nil
}

// readable checks that a clipped result is shown as valid text, has one marker, and leads to exactly what is left out.
func readable(v clip.View) error {
	edits := slices.DeleteFunc(slices.Clone(v.Edits), func(e clip.Edit) bool { return e.Kind == clip.Removed })
	shown := clip.Shown(v.Messages, edits)
	for _, c := range edits {
		if c.Position == 0 {
			continue
		}
		i := slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position == c.Position })
		if i < 0 {
			return fmt.Errorf("a clip of message %d, which is not in the view", c.Position)
		}
		m, was := v.Messages[i], v.Messages[i].Content[c.Part].Text
		now := shown[i].Content[c.Part].Text
		if m.Content[c.Part].Type == recall.ToolCall {
			if err := readableCall(m.Content[c.Part], shown[i].Content[c.Part], c, m.Seq); err != nil {
				return err
			}
			continue
		}
		if n := len(m.Content[c.Part].Images); n > 0 && c.Chars == 0 {
			now = strings.TrimSuffix(now, fmt.Sprintf("\n[Images left out here: %d]", n))
			if now == was {
				continue
			}
		}
		if cut := cutMarker.FindStringSubmatch(now); cut != nil && c.Chars == 0 {
			offset, _ := strconv.Atoi(cut[2])
			if cut[1] != fmt.Sprint(m.Seq) || !strings.HasPrefix(m.Text()[offset:], was) {
				return fmt.Errorf("message %d is not whole again with %s", c.Position, now)
			}
			continue
		}
		head, rest, ok := strings.Cut(now, "\n[")
		if !ok || !utf8.ValidString(now) || strings.Count(now, " characters left out: call expand(") != 1 ||
			tokens.Estimate(now) >= tokens.Estimate(was) {
			return fmt.Errorf("of message %d, this is shown: %.200q", c.Position, now)
		}
		var omitted, total, offset, limit int
		var seq int64
		if _, err := fmt.Sscanf(rest, "%d of %d characters left out: call expand(id=\"%d\", offset=%d, limit=%d)]",
			&omitted, &total, &seq, &offset, &limit); err != nil {
			return fmt.Errorf("of message %d, the marker is %.200q: %w", c.Position, rest, err)
		}
		_, tail, _ := strings.Cut(rest, "]\n")
		rebuilt := head + string([]rune(m.Text()[offset:])[:omitted]) + tail
		if seq != m.Seq || rebuilt != was || total != utf8.RuneCountInString(was) {
			return fmt.Errorf("message %d is not whole again with what seq %d has from %d on", c.Position, seq, offset)
		}
		if strings.Contains(was, "\x1b") && (begunEscape.MatchString(head) || endingEscape.MatchString(tail)) {
			return fmt.Errorf("message %d is cut within an escape sequence: %q … %.20q", c.Position, head[max(len(head)-20, 0):],
				tail)
		}
	}
	return nil
}

// readableCall checks that clipped arguments are JSON, have at most a number of characters besides their markers
// (escaped ones count more), and lead to what is left out.
func readableCall(before, after recall.Part, c clip.Edit, seq int64) error {
	if after.Input == fmt.Sprintf(`{"cut":"expand(id=%d)"}`, seq) && c.Chars == 0 ||
		after.Input == "{}" && c.Kind == clip.Stub {
		return nil
	}
	plain := markers.ReplaceAllString(after.Input, "")
	if n := utf8.RuneCountInString(plain); !json.Valid([]byte(after.Input)) || plain == after.Input ||
		!strings.Contains(after.Input, fmt.Sprintf(`(id=\"%d\", `, seq)) || n > 6*c.Chars+200 || after.Name != before.Name ||
		after.CallID != before.CallID {
		return fmt.Errorf("of arguments of %d bytes, clipped to %d, this is shown: %.300q", len(before.Input), c.Chars,
			after.Input)
	}
	return nil
}

// cutMarker matches the marker of a text that is not shown at all.
var cutMarker = regexp.MustCompile(`^\[cut: expand\(id=(\d+)(?:, offset=(\d+))?\)\]$`)

var markers = regexp.MustCompile(`\\n\[\d+ of \d+ characters left out: call expand\(id=` +
	`\\"\d+\\", offset=\d+, limit=\d+\)\]\\n`)

// Beginnings and ends of texts that were cut within a terminal's color codes.
var (
	begunEscape  = regexp.MustCompile(`\x1b(\[[0-9;]*)?$`)
	endingEscape = regexp.MustCompile(`^\[?[0-9;]*m`)
)

// changesFrom checks that nothing is shown differently before the position that the plan names.
func changesFrom(before, after clip.View, p plan.Plan) error {
	shownBefore, shownAfter := clip.Shown(before.Messages, before.Edits), clip.Shown(after.Messages, after.Edits)
	if before.SummaryText() != after.SummaryText() && p.Evicted == 0 {
		if p.FirstChanged != 1 {
			return fmt.Errorf("the summary is clipped, and the first change is said to be at %d", p.FirstChanged)
		}
		return nil
	}
	for i, m := range shownBefore {
		if m.Position >= p.FirstChanged {
			if i < len(shownAfter) && reflect.DeepEqual(shownAfter[i], m) {
				return fmt.Errorf("the first change is said to be at %d, which stays as it is", p.FirstChanged)
			}
			return nil
		}
		if i >= len(shownAfter) || !reflect.DeepEqual(shownAfter[i], m) {
			return fmt.Errorf("message %d changes, and the first change is said to be at %d", m.Position, p.FirstChanged)
		}
	}
	return fmt.Errorf("nothing changes at %d", p.FirstChanged)
}

// soundNothing checks that a *Nothing leaves nothing undone.
func soundNothing(v clip.View, s plan.Settings, _ *plan.Nothing) error {
	limit := int(s.Trigger*float64(v.Window) + 1e-9)
	if least := limit + plan.LeastSummary; clip.Estimate(v) > least && clip.Counted(v) > least {
		return fmt.Errorf("nothing is to be done about %d tokens, of which %d fit", clip.Estimate(v), limit)
	}
	return nil
}

// soundTooBig checks that a *TooBig is right: the fixed parts, the user's newest message, an open call with what
// belongs to it, and a summary do not fit.
func soundTooBig(v clip.View, s plan.Settings, big *plan.TooBig) error {
	least := v.Fixed + plan.LeastSummary
	answered := map[string]bool{}
	newest := len(v.Messages)
	for i, m := range slices.Backward(v.Messages) {
		for _, p := range m.Content {
			if p.Type == recall.ToolReturn {
				answered[p.CallID] = true
			}
			if p.Type == recall.ToolCall && newest == len(v.Messages) {
				newest = i
			}
		}
	}
	user := false
	for i, m := range slices.Backward(v.Messages) {
		size := m.Tokens
		for _, p := range m.Content {
			if i >= newest && (p.Type == recall.ToolReturn || m.Role == recall.Assistant) {
				size -= max(tokens.Estimate(p.Text+p.Input)-60, 0) + 1000*len(p.Images)
			}
		}
		if m.Role == recall.User && !user || i >= newest {
			least += size
		}
		user = user || m.Role == recall.User
	}
	limit := int(s.Trigger * float64(v.Window))
	if clip.Estimate(v) <= limit {
		return fmt.Errorf("%w, but the view fits as it is, with %d tokens of %d", big, clip.Estimate(v), limit)
	}
	if least < limit {
		return fmt.Errorf("%w, but %d tokens would do of %d", big, least, limit)
	}
	if big.Least <= big.Limit || len(big.Items) == 0 || !strings.Contains(big.Error(), big.Items[0].What) {
		return fmt.Errorf("what is too big is not named: %w", big)
	}
	return nil
}

// However long an agent lives, it is compacted now and then, never twice for the same growth, and its window never
// overflows.
func TestUsageStaysFlatHoweverLongAnAgentLives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Pure(3, 12)) {
		h := newHistory(seed)
		h.big = 1500
		v := clip.View{Window: 32_000, Fixed: 4000}
		s := plan.Defaults()
		if seed%3 == 2 {
			s.Mode = plan.All
		}
		var memory plan.TriggerState
		total, compactions, most := 0, 0, 0
		for len(h.messages) < 4000 {
			old := len(h.messages)
			h.live(1)
			v.Messages = append(v.Messages, h.messages[old:]...)
			for _, m := range h.messages[old:] {
				total += m.Tokens
			}
			var due plan.Decision
			due, memory = plan.Check(clip.Estimate(v), v.Window, v.Open(), s, memory)
			if due.Compact {
				p, err := plan.MakePlan(v, s)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				v = p.View(v, made(h, p, p.Evict(v)))
				memory.Disarmed, memory.Base = true, p.After
				compactions++
			}
			most = max(most, clip.Estimate(v))
		}
		// After a compaction to at most 70 percent, 20 percent of the window must come before the next one.
		if atMost := total/(v.Window/5) + 1; compactions > atMost || compactions == 0 || most >= v.Window {
			t.Errorf("seed %d: %d compactions for %d tokens, at most %d tokens in the window", seed, compactions, total, most)
		}
	}
}

// messagesOf returns how long a life is at first: mostly short, sometimes very long.
func messagesOf(seed uint64) int {
	switch {
	case seed%5000 == 4999:
		return 10_000
	case seed%100 == 99:
		return 300
	default:
		return int(seed % 19)
	}
}

func FuzzPlan(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed, uint16(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		var o outcomes
		if err := live(seed, int(n)%29, &o); err != nil {
			t.Fatal(err)
		}
	})
}
