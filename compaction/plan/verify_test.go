package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// A compaction is not committed if it was changed so that it would lose or duplicate something.
func TestWhatDoesNotConserveIsRefused(t *testing.T) {
	t.Parallel()
	type commit struct {
		before clip.View
		given  clip.Evicted
		after  clip.View
	}
	drop := func(messages []recall.Message, position int) []recall.Message {
		return slices.DeleteFunc(slices.Clone(messages), func(m recall.Message) bool { return m.Position == position })
	}
	for name, c := range map[string]struct {
		change func(*commit)
		says   string
	}{
		"as it is planned": {func(*commit) {}, ""},
		"a message is lost": {func(c *commit) { c.after.Messages = drop(c.after.Messages, 12) },
			"message 12 would be neither"},
		"the newest is lost": {func(c *commit) { c.after.Messages = drop(c.after.Messages, 20) },
			"message 20 would be neither"},
		"one is not summarised": {func(c *commit) { c.given.Messages = drop(c.given.Messages, 2) },
			"message 2 would be neither"},
		"one is both": {func(c *commit) { c.after.Messages = slices.Clone(c.before.Messages) }, "both"},
		"one is visible twice": {func(c *commit) { c.after.Messages = append(c.after.Messages, c.after.Messages[3]) },
			"is not of the view before"},
		"one is given twice": {func(c *commit) { c.given.Messages = append(c.given.Messages, c.given.Messages[0]) },
			"message 1 was given"},
		"another is given": {func(c *commit) {
			c.given.Messages, c.after.Summary.To = append(c.given.Messages, recall.Message{Position: 99}), 99
		}, "message 99 was given"},
		"another is visible": {func(c *commit) {
			c.after.Messages = append(c.after.Messages,
				recall.Message{Position: 99})
		}, "message 99 would be visible"},
		"the order changes":          {func(c *commit) { slices.Reverse(c.after.Messages) }, "neither"},
		"one is another":             {func(c *commit) { c.after.Messages[0].ID = "message-x" }, "neither"},
		"one has lost a part":        {func(c *commit) { c.after.Messages[0].Content = nil }, "neither"},
		"no summary":                 {func(c *commit) { c.after.Summary = nil }, "does not cover all from position 1"},
		"a summary of less":          {func(c *commit) { c.after.Summary.To-- }, "does not cover all"},
		"a summary that begins late": {func(c *commit) { c.after.Summary.From++ }, "does not cover all"},
		"the summary before is forgotten": {func(c *commit) {
			c.before.Summary = &clip.Summary{Text: "old", From: 1, To: 1}
		}, "was not carried along"},
		"the range of the summary before is left out": {func(c *commit) {
			c.before.Summary = &clip.Summary{Text: "old", From: -3}
			c.given.Previous = c.before.Summary
		}, "does not cover all from position -3"},
		"another is carried along": {func(c *commit) {
			c.before.Summary, c.given.Previous = &clip.Summary{Text: "old", From: 1, To: 1},
				&clip.Summary{Text: "new"}
		}, "was not carried along"},
		"nothing leaves, and the summary changes": {func(c *commit) {
			c.given.Messages, c.after.Messages = nil,
				c.before.Messages
		}, "the summary would change"},
		"a call leaves without its result": {func(c *commit) {
			c.given.Messages, c.after.Messages = c.before.Messages[:8], c.before.Messages[8:]
			c.after.Summary.To = 8
		}, "only one of them would leave"},
		"a result leaves without its call": {func(c *commit) {
			c.given.Messages = append(slices.Clone(c.before.Messages[:7]), c.before.Messages[8])
			c.after.Messages = append([]recall.Message{c.before.Messages[7]}, c.before.Messages[9:]...)
			c.after.Summary.To = 9
		}, "only one of them would leave"},
		"an open call leaves": {func(c *commit) {
			c.given.Messages, c.after.Messages = drop(c.before.Messages, 18), []recall.Message{c.before.Messages[17]}
			c.after.Summary.To = 21
		}, "the model has not answered"},
		"the newest of the user leaves": {func(c *commit) {
			c.given.Messages, c.after.Messages = c.before.Messages[:18], c.before.Messages[18:]
			c.after.Summary.To = 18
		}, "message 18 is the newest of the user"},
		"a clip of what leaves": {func(c *commit) { c.after.Edits = []clip.Edit{{Position: 3, Chars: 1}} },
			"message 3 has no part 0"},
		"an edit of the user's newest message": {func(c *commit) {
			c.after.Edits = []clip.Edit{{Position: 18,
				Chars: 1}}
		},
			"message 18 is the newest of the user"},
		"a clip of no part": {func(c *commit) {
			c.after.Edits = []clip.Edit{{Position: 9, Part: 1,
				Chars: 1}}
		}, "has no part 1"},
		"two edits of a part": {func(c *commit) {
			c.after.Edits = []clip.Edit{{Position: 11, Chars: 1},
				{Position: 11, Chars: 2}}
		}, "two edits of part 0"},
		"a stub becomes a clip": {func(c *commit) {
			c.before.Edits = []clip.Edit{{Position: 11, Kind: clip.Stub, Text: "cleared"}}
			c.after.Edits = []clip.Edit{{Position: 11, Chars: 1}}
		}, "would show more"},
		"a result is removed": {func(c *commit) {
			c.after.Edits = []clip.Edit{{Position: 11, Kind: clip.Removed}}
		}, "would be shown without its call"},
		"an edit of an unknown kind": {func(c *commit) {
			c.after.Edits = []clip.Edit{{Position: 11, Kind: "blurred"}}
		}, "has no part 0"},
		"a clip is undone": {func(c *commit) { c.before.Edits = []clip.Edit{{Position: 11, Chars: 1}} },
			"would show more"},
	} {
		v := window(100_000, 0).say(recall.User, 20).say(recall.Assistant, 20).say(recall.User, 20)
		for range 7 {
			v.look(30)
		}
		v.say(recall.User, 20).look(10)
		v.put(recall.Assistant, "", called("open", "{}"))
		p, err := plan.MakePlan(v.View, plan.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		evicted := p.Evict(v.View)
		all := commit{v.View, evicted, p.View(v.View, &clip.Summary{Text: "s", From: p.From, To: p.To})}
		c.change(&all)
		err = plan.CheckNothingLost(all.before, all.given, all.after)
		violation, ok := errors.AsType[*plan.Violation](err)
		if ok != (c.says != "") || ok && !strings.Contains(violation.Error(), c.says) {
			t.Errorf("%s: %v, want %q (%v)", name, err, c.says, fmt.Sprint(p))
		}
	}
}
