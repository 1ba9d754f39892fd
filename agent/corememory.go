package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
)

// Bounds on what always stands in a prompt. A token has about charsPerToken characters.
const (
	charsPerToken = 4
	blockShare    = 5     // a block has at most one fifth of the window
	indexShare    = 10    // the index of memory files shows at most a tenth of the window
	maxIndexChars = 5_000 // characters that a prompt shows of that index in any window
)

// BlockChars returns how many characters a block with a limit may have in the agent's window: the limit, or a fifth of
// the window if that is less. In an unknown window it is the limit.
func (a Agent) BlockChars(limit int) int {
	if window := a.Window(); window > 0 {
		return min(limit, window/blockShare*charsPerToken)
	}
	return limit
}

func (a Agent) indexChars() int {
	if window := a.Window(); window > 0 {
		return min(maxIndexChars, window/indexShare*charsPerToken)
	}
	return maxIndexChars
}

// coreMemory is what stands in every prompt of a conversation: the agent's blocks, the index of its memory files, and
// the conversation's working memory.
type coreMemory struct {
	agent   Agent
	blocks  []block.Block
	index   *memoryfile.File // nil: none, or no tool reads the files
	working string
	has     recall.Toolset

	bounds *policy.Bootstrap // of blocks and the index; nil: none
}

// coreMemory reads the core memory of a conversation.
func (s *Store) coreMemory(ctx context.Context, org db.Org, a Agent, c recall.Conversation, tools []Definition) (
	m coreMemory, err error) {
	m.agent, m.has = a, toolset(tools)
	if m.blocks, err = s.Blocks.OfAgent(ctx, org, a.ID); err != nil {
		return m, err
	}
	state, err := s.Working.Memory(ctx, org, c)
	if err != nil {
		return m, err
	}
	m.working = state.Text
	if !hasTool(tools, "memory_files") && !hasTool(tools, "memory") {
		return m, nil
	}
	index, err := s.MemoryFiles.Index(ctx, org, a.ID)
	if errors.Is(err, db.ErrNotFound) {
		return m, nil
	}
	m.index = &index
	return m, err
}

// ShownMemory returns the blocks of an agent, and the working memory of a conversation of its, as a prompt shows them;
// each is empty if there is none. A conversation without a key has no working memory.
func (s *Store) ShownMemory(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (
	blocks, workingMemory string, err error) {
	m, err := s.coreMemory(ctx, org, a, c, nil)
	if err != nil {
		return "", "", err
	}
	blocks, workingMemory = m.render(0)
	return blocks, workingMemory, nil
}

// longest returns the characters of the longest text.
func (m coreMemory) longest() int {
	longest := utf8.RuneCountInString(m.working)
	for _, b := range m.blocks {
		longest = max(longest, utf8.RuneCountInString(b.Value))
		if b.Description != nil {
			longest = max(longest, utf8.RuneCountInString(*b.Description))
		}
	}
	if m.index != nil {
		longest = max(longest, utf8.RuneCountInString(m.index.Content))
	}
	return longest
}

// render writes the blocks with the index, and the working memory. Each text shows at most chars characters, and says
// how to read on; 0 shows all.
func (m coreMemory) render(chars int) (blocks, workingMemory string) {
	if chars == 0 {
		chars = math.MaxInt
	}
	left := math.MaxInt // characters of all texts together
	if m.bounds != nil {
		left = m.bounds.MaxTotalChars
	}
	return strings.TrimPrefix(m.renderBlocks(chars, &left)+m.renderIndex(chars, &left), "\n\n"), m.renderWorking(chars)
}

// shown returns the part of a text that a prompt shows: at most chars characters, and at most left, which it lowers.
// note says why the window bounds the text, and how to read on.
func (m coreMemory) shown(text string, chars int, left *int, note [2]string, names []string) string {
	if m.bounds == nil {
		return shownPart(text, chars, note[0]+note[1], names)
	}
	total, most := utf8.RuneCountInString(text), min(m.bounds.MaxChars, *left)
	*left -= min(total, most)
	if total <= most || chars < most {
		return shownPart(text, chars, note[0]+note[1], names)
	}
	head := beginning(text, int(m.bounds.HeadShare*float64(most)))
	tail := text[len(beginning(text, total-most+utf8.RuneCountInString(head))):]
	more := strings.ReplaceAll(note[1], "%d", strconv.Itoa(strings.Count(head, "\n")+1))
	more = strings.Replace(more, " To read on, call: ", ": call ", 1)
	cut := fmt.Sprintf(frame.CharsLeftOut, "", total-most, total, more)
	return frame.Neutralize(head, names...) + "\n" + cut + "\n" + frame.Neutralize(tail, names...)
}

// renderBlocks writes the section of the prompt with an agent's blocks, in Letta's layout; empty without blocks. Texts
// are neutralized, so that no value can end its section.
func (m coreMemory) renderBlocks(chars int, left *int) string {
	if len(m.blocks) == 0 {
		return ""
	}
	names := Labels(m.blocks)
	var b strings.Builder
	b.WriteString("<memory_blocks>\nThe following memory blocks are currently engaged in your core memory unit:\n")
	for _, of := range m.blocks {
		begin, end := tags(of.Label)
		fmt.Fprintf(&b, "\n%s\n", begin)
		if of.Description != nil && *of.Description != "" {
			fmt.Fprintf(&b, "<description>\n%s\n</description>\n",
				shownPart(*of.Description, chars, noRoom, names))
		}
		b.WriteString("<metadata>\n")
		if of.ReadOnly {
			b.WriteString("- read_only=true\n")
		}
		fmt.Fprintf(&b, "- chars_current=%d\n- chars_limit=%d\n</metadata>\n<value>\n%s\n</value>\n%s\n",
			utf8.RuneCountInString(of.Value), m.agent.BlockChars(of.Limit),
			m.shown(of.Value, chars, left, [2]string{noRoom, m.viewing([]string{"memory"}, of.Label)}, names), end)
	}
	b.WriteString("\n</memory_blocks>")
	return b.String()
}

// renderIndex writes the section of the prompt with the index of an agent's memory files, after an empty line. It is
// empty if there is no index.
func (m coreMemory) renderIndex(chars int, left *int) string {
	if m.index == nil {
		return ""
	}
	shown := m.shown(strings.TrimSuffix(m.index.Content, "\n"), min(chars, m.agent.indexChars()), left,
		[2]string{"", m.viewing([]string{"memory_files", "memory"}, m.index.Path)}, Labels(m.blocks))
	return fmt.Sprintf("\n\n<memory_files index=\"%s\">\n%s\n</memory_files>", attribute(m.index.Path), shown)
}

// renderWorking returns the working memory. Whole lines are left out at its end.
func (m coreMemory) renderWorking(chars int) string {
	total := utf8.RuneCountInString(m.working)
	if total <= chars {
		return m.working
	}
	const end = "</working_memory>"
	shown := beginning(strings.TrimSuffix(m.working, end), chars)
	shown = shown[:strings.LastIndexByte(shown, '\n')+1]
	if edit := strings.Index(shown, "\n<last_edit>"); edit >= 0 && !strings.Contains(shown, "</last_edit>") {
		shown = shown[:strings.LastIndexByte(shown[:edit], '\n')+1]
	}
	if shown == "" {
		shown = "<working_memory>\n"
	}
	return shown + fmt.Sprintf(frame.FirstChars, utf8.RuneCountInString(shown), total, noRoom) + "\n" + end
}

// noRoom says why a text is shown in part.
const noRoom = " The window has no room for more."

// viewing returns a sentence with a call that reads a text from a line on, which a verb stands for. It is empty if the
// agent has none of the tools.
func (m coreMemory) viewing(tools []string, path string) string {
	for _, name := range tools {
		if m.has(name) {
			return fmt.Sprintf(" To read on, call: %s(command=\"view\", path=%q, view_range=[%%d, -1])", name, path)
		}
	}
	return ""
}

// shownPart returns the first characters of a text, neutralized for a prompt with tags of these names. If that is not
// all, a note says so, with more, in which a verb stands for the line at which to read on.
func shownPart(text string, chars int, more string, names []string) string {
	shown := beginning(text, chars)
	if shown == text {
		return frame.Neutralize(text, names...)
	}
	if i := strings.LastIndexByte(shown, '\n'); i >= len(shown)/2 {
		shown = shown[:i+1]
	}
	more = strings.ReplaceAll(more, "%d", strconv.Itoa(strings.Count(shown, "\n")+1))
	note := fmt.Sprintf(frame.FirstChars, utf8.RuneCountInString(shown), utf8.RuneCountInString(text), more)
	return frame.Neutralize(strings.TrimSuffix(shown, "\n"), names...) + "\n" + note
}

// beginning returns the first characters of a text.
func beginning(text string, chars int) string {
	for i := range text {
		if chars--; chars < 0 {
			return text[:i]
		}
	}
	return text
}

// Labels returns those labels of blocks that are names of tags in a prompt. No value may close these tags.
func Labels(blocks []block.Block) (names []string) {
	for _, b := range blocks {
		if tagName.MatchString(b.Label) {
			names = append(names, b.Label)
		}
	}
	return names
}

// tagName matches the name of a tag.
var tagName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`)

// tags returns the tags around a block. As in Letta, their name is the label if that can be a tag's name.
func tags(label string) (begin, end string) {
	if tagName.MatchString(label) {
		return "<" + label + ">", "</" + label + ">"
	}
	return `<block label="` + label + `">`, "</block>"
}
