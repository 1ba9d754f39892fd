package recall_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// A draft is accepted at each bound, and refused just beyond it with a text that names the field.
func TestDraftsHaveBounds(t *testing.T) {
	t.Parallel()
	const most = recall.MaxPartBytes
	large := strings.Repeat("x", most+4)
	letters := func(n int) string { return large[:n] }
	parts := func(n int) recall.Draft {
		return recall.Draft{Role: recall.User, Content: slices.Repeat([]recall.Part{{Type: recall.Text, Text: "x"}}, n)}
	}
	part := func(role recall.Role, p recall.Part) recall.Draft {
		return recall.Draft{Role: role, Content: []recall.Part{p}}
	}
	otid := func(n int) recall.Draft {
		d := say(recall.User, "x")
		d.OTID = new(letters(n))
		return d
	}
	at := func(moment time.Time) recall.Draft {
		d := say(recall.User, "x")
		d.CreatedAt = &moment
		return d
	}
	image := func(n int) recall.Draft {
		source, err := json.Marshal(map[string]string{"type": "base64", "media_type": "image/png", "data": letters(n)})
		if err != nil {
			t.Fatal(err)
		}
		return part(recall.User, recall.Part{Type: recall.Image, Source: source})
	}
	const frame = len(`{"data":"","media_type":"image/png","type":"base64"}`)
	for _, c := range []struct {
		name         string
		last, beyond recall.Draft
		problem      string // part of the error
	}{
		{"parts", parts(recall.MaxParts), parts(recall.MaxParts + 1), "1001 parts"},
		{"the bytes of a text", part(recall.User, recall.Part{Type: recall.Text, Text: letters(most)}),
			part(recall.User, recall.Part{Type: recall.Text, Text: letters(most + 1)}), "a part has 16777217 bytes"},
		{"the bytes of an input",
			part(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: "1", Name: "f", Input: letters(most)}),
			part(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: "1", Name: "f", Input: letters(most + 1)}),
			"a part has 16777217 bytes"},
		{"the bytes of an image", image(most - frame), image(most - frame + 4), "has 16777220 bytes"},
		{"an otid", otid(512), otid(513), "otid has 513 bytes"},
		{"the id of a call", part(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: letters(512), Name: "f"}),
			part(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: letters(513), Name: "f"}), "513 bytes"},
		{"the id of a result's call", part(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: "1"}),
			part(recall.Tool, recall.Part{Type: recall.ToolReturn}), "0 bytes"},
		{"the name of a tool", part(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: "1", Name: letters(512)}),
			part(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: "1", Name: letters(513)}), "513 bytes"},
		{"a day of clocks that disagree", at(time.Now().Add(23 * time.Hour)), at(time.Now().Add(25 * time.Hour)),
			"created_at"},
		{"the year", at(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)),
			at(time.Date(1899, 12, 31, 23, 59, 59, 0, time.UTC)), "created_at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.last.Check(); err != nil {
				t.Errorf("at the bound: %v", err)
			}
			if err := c.beyond.Check(); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("beyond the bound: got %v, want ErrInvalid with %q", err, c.problem)
			}
		})
	}
}
