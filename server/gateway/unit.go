package gateway

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/capture"
)

// unit is a message as it is stored. What a model wrote at one time is one unit, whatever the number of items in the
// request; so are the results of tools that follow each other.
type unit struct {
	recall.Draft
	items  []int  // indexes in the request of the items that it comes from
	otid   string // says which messages stand before it, and what it says; empty where the history is not sent again
	known  bool   // it is stored
	place  int    // its position in the conversation, if that is known; else 0
	stored string // the otid of the stored message, if that is another; the client has shortened its history
	hidden bool   // it is not sent
}

// otidPrefix begins the otids of messages that came through the gateway.
const otidPrefix = "gw-"

// next returns the otid of a message behind the one with an otid.
func next(otid string, d recall.Draft) string {
	sum := digest(d)
	return hashed(otid, string(sum[:]))
}

// hashed returns an otid that is made from texts.
func hashed(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d %s", len(t), t)
	}
	return otidPrefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// insidePrefix begins the otids of messages that the client does not see: answers that only call the agent's tools, and
// the results of these.
const insidePrefix = otidPrefix + "in-"

// insideOTID returns the otid of such a message beside the answer with an otid. n counts those before the answer; -1 is
// the message with the results of calls in the answer itself.
func insideOTID(otid string, n int) string {
	hash, _ := strings.CutPrefix(hashed("inside", otid, fmt.Sprint(n)), otidPrefix)
	return insidePrefix + hash
}

func isInside(m recall.Message) bool {
	return m.OTID != nil && strings.HasPrefix(*m.OTID, insidePrefix)
}

// digest is the hash of what a message says: its role, its text, images, calls and results. Spaces, ids, thoughts,
// signatures, cache marks and the order of keys in arguments do not count, because clients send them back in other
// forms.
func digest(d recall.Draft) [sha256.Size]byte {
	h := sha256.New()
	put := func(kind, text string) { fmt.Fprintf(h, "%s %d %s\n", kind, len(text), text) }
	put("role", string(d.Role))
	var said strings.Builder
	for _, p := range d.Content {
		switch p.Type {
		case recall.Text:
			said.WriteString(p.Text)
		case recall.Image:
			put("image", string(canonical(p.Source)))
		case recall.ToolCall:
			put("call", p.Name)
			put("input", string(canonical(json.RawMessage(p.Input))))
		case recall.ToolReturn:
			put("result", withoutSpaces(p.Text))
			for _, image := range p.Images {
				put("image", string(canonical(image)))
			}
		}
	}
	put("text", withoutSpaces(said.String()))
	return sha256.Sum256(h.Sum(nil))
}

func withoutSpaces(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// canonical returns JSON with sorted keys and without spaces; a text that is no JSON only loses its spaces.
func canonical(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if len(raw) == 0 || decoder.Decode(&value) != nil || decoder.More() {
		return []byte(cmp.Or(withoutSpaces(string(raw)), "{}"))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return text
}

// last returns the index of the unit's last item.
func (u unit) last() int { return u.items[len(u.items)-1] }

// readUnits reads the items of a request, and the texts of the system prompts among them. An item that is not
// understood becomes a text that says what it was.
func readUnits(items []json.RawMessage) (units []unit, system []string) {
	for i, raw := range items {
		for _, d := range draftsOf(raw) {
			if d.Role == recall.System {
				system = append(system, textOf(d))
				continue
			}
			last := len(units) - 1
			if last >= 0 && units[last].Role == d.Role && d.Role != recall.User {
				units[last].Content = withParts(units[last].Content, d.Content)
				units[last].items = append(units[last].items, i)
				continue
			}
			units = append(units, unit{Draft: d, items: []int{i}})
		}
	}
	return units, system
}

// withParts adds parts to those of a message. Of several results of one call the first one stays.
func withParts(all, more []recall.Part) []recall.Part {
	all = slices.Clip(all)
	for _, p := range more {
		if p.Type != recall.ToolReturn || !slices.ContainsFunc(all, func(q recall.Part) bool {
			return q.Type == recall.ToolReturn && q.CallID == p.CallID
		}) {
			all = append(all, p)
		}
	}
	return all
}

func textOf(d recall.Draft) string {
	var texts []string
	for _, p := range d.Content {
		if p.Type == recall.Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// draftsOf reads an item.
func draftsOf(raw json.RawMessage) (drafts []recall.Draft) {
	batch := capture.OfMessages(append(append(json.RawMessage("["), raw...), ']'), time.UTC)
	for d, err := range batch.Drafts() {
		if err != nil || d.Check() != nil {
			return []recall.Draft{otherwise(raw)}
		}
		drafts = append(drafts, recall.Draft{Role: d.Role, Name: d.Name, Content: d.Content})
	}
	return drafts
}

// otherwise returns a draft for an item that the log has no form for: its texts, and the types of its other parts.
func otherwise(raw json.RawMessage) recall.Draft {
	var item struct {
		Role    string          `json:"role"`
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(raw, &item) // what is no object has neither
	d := recall.Draft{Role: recall.User}
	switch {
	case item.Role == "system" || item.Role == "developer":
		d.Role = recall.System
	case item.Role == "assistant" || item.Role == "" && !strings.HasSuffix(item.Type, "_output"):
		d.Role = recall.Assistant
	}
	var text string
	var parts []json.RawMessage
	switch {
	case json.Unmarshal(item.Content, &text) == nil:
	case json.Unmarshal(item.Content, &parts) == nil:
		var texts []string
		for _, raw := range parts {
			texts = append(texts, shownPart(raw))
		}
		text = strings.Join(texts, "\n")
	default:
		text = shownPart(raw)
	}
	const most = recall.MaxPartBytes / 2
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	d.Content = []recall.Part{{Type: recall.Text, Text: text}}
	return d
}

// shownPart returns the text of a part, or a note of its type.
func shownPart(raw json.RawMessage) string {
	var part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &part) // likewise
	if part.Text != "" {
		return part.Text
	}
	return "[" + cmp.Or(part.Type, "something") + " that is not kept]"
}

// link gives the units their otids. before is the otid before the first of them.
func link(before string, units []unit) {
	for i := range units {
		before = next(before, units[i].Draft)
		units[i].otid = before
	}
}
