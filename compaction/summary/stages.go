package summary

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// Limits of a summary in stages. They are OpenClaw's, except MaxParts.
const (
	chunkRatio    = 0.4 // share of the model's window for a part
	leastRatio    = 0.15
	chunkOverhead = 4_096 // tokens for the instruction and the answer
	leastStaged   = 4     // messages
	MaxParts      = 8
	fewParts      = 3 // in formats that do not ask for stages: the model's calls take time before a prompt
)

// MaxChunk returns the most tokens of a transcript in one part, for a model with this window. average is the average
// size of a message: if messages are long, parts are smaller, because a part ends between two messages.
func MaxChunk(window, average int) int {
	ratio := chunkRatio
	if share := margin * float64(average) / float64(window); share > 0.1 {
		ratio = max(ratio-min(2*share, 0.25), leastRatio)
	}
	return max(int(ratio*float64(window))-chunkOverhead, window/8)
}

// StageCuts returns the indexes at which messages with these tokens are cut into parts of about equal size, each at
// most most tokens. No cut separates messages that belong together. It returns none if there are few messages, or one
// part can hold them all.
func StageCuts(messages []recall.Message, tokens []int, most int) (cuts []int) {
	all := 0
	for _, n := range tokens {
		all += n
	}
	if len(messages) < leastStaged || all <= most {
		return nil
	}
	parts := max(2, int(math.Ceil(margin*float64(all)/float64(most))))
	points, sum := clip.CutPointsOf(messages), 0
	for i, n := range tokens {
		due := (len(cuts) + 1) * all / parts
		if sum >= due && !points.Inside[i] && i > 0 && len(cuts) < parts-1 {
			cuts = append(cuts, i)
		}
		sum += n
	}
	return cuts
}

// staged asks for a summary of each part, and then for one summary of these. If the model fails after the first part,
// the summaries so far are kept, and a note says what it did not read. ok is false if there would be more than most
// parts, or nothing was written.
func (w *writer) staged(ctx context.Context, most int) (text string, ok bool) {
	if w.window == 0 {
		return "", false
	}
	chunks := w.chunks(most)
	if len(chunks) < 2 || len(chunks) > most {
		return "", false
	}
	w.maxCalls += len(chunks)
	var written []string
	for i, chunk := range chunks {
		part, err := w.askPlain(ctx, w.request(w.chunkMaterial(chunk, i, len(chunks))))
		if err != nil {
			if i == 0 {
				return "", false
			}
			w.cut = slices.Concat(chunks[i:]...)
			w.saysWhatIsCut()
			note := fmt.Sprintf(frame.FirstParts, i, len(chunks))
			return w.repaired(w.unmerged(written) + "\n\n" + note), true
		}
		written = append(written, part)
	}
	merged, err := w.askPlain(ctx, w.mergeRequest(chunks, written))
	if err != nil {
		merged = w.unmerged(written)
	}
	w.why, w.detail = "", ""
	return w.repaired(merged), true
}

// unmerged returns the summaries of the parts in order, each cut to its share of the budget.
func (w *writer) unmerged(written []string) string {
	for i, text := range written {
		written[i] = prose.CutTo(text, w.budget/len(written)-2)
	}
	return strings.Join(written, "\n\n")
}

// chunks returns the messages in parts. In few parts, each takes as much of the model's window as it can.
func (w *writer) chunks(parts int) (chunks [][]recall.Message) {
	sizes := make([]int, len(w.e.Messages))
	all := 0
	for i, m := range w.e.Messages {
		sizes[i] = min(prose.TokensIn(prose.Transcript([]recall.Message{m}, true)), int(w.largest()))
		all += sizes[i]
	}
	most := int(float64(MaxChunk(w.window, all/max(len(sizes), 1))) / margin)
	if parts <= fewParts {
		most = int(float64(w.window-w.answer())/w.scale) - tokensOfMessages(w.request(""))
		if most < leastRoom {
			return nil
		}
	}
	from := 0
	for _, cut := range append(StageCuts(w.e.Messages, sizes, most), len(w.e.Messages)) {
		chunks = append(chunks, w.e.Messages[from:cut])
		from = cut
	}
	return chunks
}

// largest returns the tokens of the largest message that a part shows.
func (w *writer) largest() float64 { return 0.5 * float64(w.window) / margin }

// chunkMaterial returns a part as a transcript, without messages that are too large for the model's window.
func (w *writer) chunkMaterial(chunk []recall.Message, i, parts int) string {
	var b strings.Builder
	fmt.Fprintf(&b, frame.OnePart+"\n", i+1, parts)
	for _, e := range prose.Transcript(chunk, true) {
		if float64(e.Tokens) > w.largest() {
			fmt.Fprintf(&b, "[%d] a message of about %dK tokens is left out of the summary\n", e.Seq, e.Tokens/1000)
			continue
		}
		b.WriteString(e.Text)
	}
	return b.String()
}

// mergeRules say how to make one summary of the parts' summaries.
const mergeRules = "The material is summaries of the parts of one conversation, in order. Make one summary of " +
	"them. Keep the state of each task, counters like 5/17, what was asked for last, decisions, what is still to be " +
	"done, and what was promised. Where they differ, the most recent holds.\n\n"

func (w *writer) mergeRequest(chunks [][]recall.Message, written []string) []chat.Message {
	var b strings.Builder
	for i, text := range written {
		when := ""
		switch i {
		case 0:
			when = " — oldest"
		case len(written) - 1:
			when = " — most recent"
		}
		c := chunks[i]
		fmt.Fprintf(&b, "Chunk %d%s, seq %d–%d:\n%s\n\n", i+1, when, c[0].Seq, c[len(c)-1].Seq, frame.Neutralize(text))
	}
	return w.request(mergeRules + b.String())
}

// askPlain asks once. An answer that is no summary is an error.
func (w *writer) askPlain(ctx context.Context, messages []chat.Message) (string, error) {
	reply, err := w.call(ctx, messages, nil, false)
	if err != nil {
		w.failed(err)
		return "", err
	}
	text := w.textOf(reply)
	if fault := w.reject(reply, text); fault.told != "" {
		if text = w.shortened(reply, text); text == "" {
			w.why = fault.why
			return "", errAskedOften
		}
	}
	return text, nil
}

// maxHeadDrops is how often the oldest rounds are left out. headShareDropped is the share of rounds to leave out if it
// is unknown by how many tokens the request was too large.
const (
	maxHeadDrops     = 3
	headShareDropped = 0.2
)

// HeadDrop returns how many of the oldest groups to leave out of a request that was gap tokens too large; gap 0 is
// unknown. groups are the tokens of each group. At least one group stays, and 0 means that no more can be left out.
func HeadDrop(groups []int, gap int) (n int) {
	if len(groups) < 2 {
		return 0
	}
	if gap <= 0 {
		return max(1, int(headShareDropped*float64(len(groups))))
	}
	for n < len(groups)-1 && gap > 0 {
		gap -= groups[n]
		n++
	}
	return n
}

// headDropped returns a request without the oldest rounds; each time more are left out. It returns nil if no more can
// be.
func (w *writer) headDropped() []chat.Message {
	var begins, groups []int
	points := clip.CutPointsOf(w.e.Messages)
	for i, m := range w.e.Messages {
		n := prose.TokensIn(prose.Transcript([]recall.Message{m}, true))
		if !points.Inside[i] && (len(begins) == 0 || w.e.Messages[i-1].Role != recall.User) {
			begins, groups = append(begins, i), append(groups, n)
			continue
		}
		groups[len(groups)-1] += n
	}
	w.dropped += HeadDrop(groups[w.dropped:], w.gap)
	if w.dropped == 0 || w.dropped >= len(groups) {
		return nil
	}
	begin := begins[w.dropped]
	w.cut = w.e.Messages[:begin]
	out, stays := prose.Transcript(w.cut, true), prose.Transcript(w.e.Messages[begin:], true)
	note := ""
	if len(out) > 0 {
		note = middleNote(out, frame.Neutralize(w.aboutCut(w.budget, min(w.budget, tokens.Estimate(prose.Joined(out))/8))))
	}
	return w.ifFits(w.request(note + prose.Joined(stays)))
}
