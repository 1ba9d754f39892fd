package policy_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// invariants checks what holds for each view that a policy makes from another, whichever stage made it. The numbers
// come from the list of invariants of context policies. Others are checked where the views are made: that a second time
// changes nothing (I5), that tokens fall (I6), that nothing is lost (I8, I9), and that the result is the same each time
// (I11).
func invariants(before, after clip.View) error {
	if before.Fixed != after.Fixed { // I3
		return errors.New("the fixed parts of the prompt change")
	}
	if err := newestUnchanged(before, after); err != nil { // I4
		return err
	}
	for _, check := range []func(before, after clip.View) error{paired, wholeEscapes, legal} {
		if err := check(before, after); err != nil {
			return err
		}
	}
	return legible(after) // I2, I7, I10
}

// lonely returns the ids of calls without a result, and of results without a call, in a view.
func lonely(v clip.View) (calls, results map[string]bool) {
	calls, results = map[string]bool{}, map[string]bool{}
	for _, m := range v.AsShown() {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				calls[p.CallID] = true
			case recall.ToolReturn:
				if !calls[p.CallID] {
					results[p.CallID] = true
				}
				delete(calls, p.CallID)
			}
		}
	}
	return calls, results
}

// late returns the ids of results that came after the user or the assistant went on. They are shown as messages of
// their own, without their calls.
func late(v clip.View) map[string]bool {
	calls, all, wentOn := map[string]int{}, map[string]bool{}, -1
	for i, m := range v.Messages {
		if m.Role == recall.User || m.Role == recall.Assistant {
			wentOn = i
		}
		for _, p := range m.Content {
			call, called := calls[p.CallID]
			switch {
			case p.Type == recall.ToolCall:
				calls[p.CallID] = i
			case p.Type == recall.ToolReturn && called && call < wentOn:
				all[p.CallID] = true
			}
		}
	}
	return all
}

// paired checks that no call lost its result, and no result its call, unless it came late: I1.
func paired(before, after clip.View) error {
	callsBefore, resultsBefore := lonely(before)
	cameLate := late(before)
	calls, results := lonely(after)
	for id := range calls {
		if !callsBefore[id] {
			return fmt.Errorf("the call %s has no result any more", id)
		}
	}
	for id := range results {
		if !resultsBefore[id] && !cameLate[id] {
			return fmt.Errorf("the result of %s has no call any more", id)
		}
	}
	return nil
}

// escape matches a whole terminal escape sequence, also as arguments spell it. escapePiece matches a cut one in the
// texts of histories.
var (
	escape      = regexp.MustCompile(`(?:\x1b|\\x1b|\\u001b)\[[0-9;]*m`)
	escapePiece = regexp.MustCompile("\x1b|\\b[0-9;]+m\\b")
)

// wholeEscapes checks that no edit cuts an escape sequence: a part of I7.
func wholeEscapes(_, after clip.View) error {
	for _, e := range after.Edits {
		i := slices.IndexFunc(after.Messages, func(m recall.Message) bool { return m.Position == e.Position })
		if i < 0 || e.Kind == clip.Removed {
			continue
		}
		whole := after.Messages[i].Content[e.Part].Text
		if !strings.Contains(whole, "\x1b[") || escapePiece.MatchString(escape.ReplaceAllString(whole, "")) {
			continue // the text was already cut before
		}
		if text := after.ShownPart(after.Messages[i], e).Text; escapePiece.MatchString(escape.ReplaceAllString(text, "")) {
			return fmt.Errorf("message %d shows a piece of an escape sequence: %q", e.Position, text)
		}
	}
	return nil
}

// legal checks that a provider accepts the messages: I13. If messages left, the first message is the user's or a
// summary, which is sent as the user's. No message is empty, and the order is the log's.
func legal(before, after clip.View) error {
	shown := after.AsShown()
	shorter := len(after.Messages) < len(before.Messages) || after.Summary != nil
	if shorter && (len(shown) == 0 || shown[0].Role != recall.Summary && shown[0].Role != recall.User) {
		return errors.New("the first message is neither a summary nor of the user")
	}
	last := 0
	for i, m := range shown {
		if m.Role == recall.Summary {
			if i > 0 || strings.TrimSpace(m.Content[0].Text) == "" {
				return errors.New("the summary is empty, or not the first message")
			}
			continue
		}
		if len(m.Content) == 0 || m.Position <= last {
			return fmt.Errorf("message %d is empty or follows message %d", m.Position, last)
		}
		last = m.Position
	}
	return nil
}

// newestUnchanged checks that the user's newest message is shown unchanged.
func newestUnchanged(before, after clip.View) error {
	i := len(before.Messages) - 1
	for i >= 0 && before.Messages[i].Role != recall.User {
		i--
	}
	if i < 0 {
		return nil
	}
	for _, m := range clip.Shown(after.Messages, after.Edits) {
		if m.Position == before.Messages[i].Position && reflect.DeepEqual(m.Content, before.Messages[i].Content) {
			return nil
		}
	}
	return fmt.Errorf("the user's newest message, at %d, is not shown as it was said", before.Messages[i].Position)
}
