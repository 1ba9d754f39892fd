package endpoint

import (
	"context"
	"errors"
	"github.com/loci-memory/loci/embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minCutRunes is the length from which a refused text is cut.
const minCutRunes = 200

// knownGood is a text that no provider has a reason to refuse.
const knownGood = "memory"

const noDirection = "a vector of zeros or of numbers that are not finite"

// tokens estimates how many tokens a text has, rather too many than too few: 3 characters of ASCII make one, other
// characters one each.
func tokens(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+2)/3 + other
}

// batches cuts a list into parts of at most maxItems with at most maxTokens together; an item that has more is alone.
func batches[T any](all []T, maxItems, maxTokens int, tokens func(T) int) (parts [][]T) {
	start, sum := 0, 0
	for i, item := range all {
		n := tokens(item)
		if i > start && (i-start == maxItems || sum+n > maxTokens) {
			parts = append(parts, all[start:i])
			start, sum = i, 0
		}
		sum += n
	}
	if start < len(all) {
		parts = append(parts, all[start:])
	}
	return parts
}

// batch embeds jobs by one request, and where the provider refuses that, each half on its own: one bad text among 32
// costs 11 requests. An error means that the provider failed, not a text.
func (o *OpenAI) batch(ctx context.Context, jobs []*job) error {
	texts := make([]string, len(jobs))
	for i, j := range jobs {
		texts[i] = j.item.Text
	}
	vectors, err := o.embedTexts(ctx, texts, int(o.limit.Load()))
	no, refused := errors.AsType[*refusal](err)
	switch half := len(jobs) / 2; {
	case refused && half == 0:
		return o.alone(ctx, jobs[0], no)
	case refused:
		if err := o.batch(ctx, jobs[:half]); err != nil {
			return err
		}
		return o.batch(ctx, jobs[half:])
	case err != nil:
		return err
	}
	for i, j := range jobs {
		j.settle(vectors[i])
	}
	return nil
}

func (j *job) settle(values []float32) {
	j.values = values
	if values == nil {
		why := "the provider answered with " + noDirection
		j.refused = &refusal{reason: why, public: why}
	}
}

// alone embeds a text that was refused on its own. It is refused for good only if the provider refuses it again after
// it took another. Cut in two it may pass; if it is refused for its length, it is cut in 4, 8, … parts, and later texts
// are cut before they are sent: small models take 512 tokens and no endpoint tells.
func (o *OpenAI) alone(ctx context.Context, j *job, no *refusal) error {
	if err := o.confirm(ctx); err != nil {
		return err
	}
	text := j.item.Text
	if !no.tooLong {
		vectors, err := o.embedTexts(ctx, []string{text}, int(o.limit.Load()))
		if err == nil {
			j.settle(vectors[0])
			return nil
		}
		if !errors.As(err, &no) {
			return err
		}
	}
	j.refused = no
	sent := min(tokens(text), int(o.limit.Load()))
	for n := 2; utf8.RuneCountInString(text) > minCutRunes*n/2 && n <= o.config.MaxBatchItems; n *= 2 {
		if no.tooLong {
			o.lower(sent * 9 / 10)
		}
		size := tokens(text)/n*9/8 + 1 // halves are not quite equal
		vectors, err := o.embedTexts(ctx, []string{text}, size)
		if err == nil {
			j.settle(vectors[0])
			return nil
		}
		if !errors.As(err, &no) {
			return err
		}
		if !no.tooLong {
			return nil
		}
		sent = 0
		for _, part := range appendParts(nil, text, size) {
			sent = max(sent, tokens(part))
		}
	}
	return nil
}

// confirm returns an error unless the provider embeds the known good text now. It refuses every text with a wrong
// setting, and may do so for a while, as when its model is loaded again.
func (o *OpenAI) confirm(ctx context.Context) error {
	vectors, err := o.request(ctx, []string{knownGood})
	if err == nil && vectors[0] == nil {
		return o.at.Wrong("with %s", noDirection)
	}
	return err
}

// directed embeds texts by one request. It asks again for those whose vectors have no direction, together with the
// known good text: nil is the vector of a text that has none while the other has one. An error means that the provider
// gives no text a direction.
func (o *OpenAI) directed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := o.request(ctx, texts)
	if err != nil || !slices.ContainsFunc(vectors, lacksDirection) {
		return vectors, err
	}
	var bad []int // of texts
	for i, v := range vectors {
		if lacksDirection(v) {
			bad = append(bad, i)
		}
	}
	for part := range slices.Chunk(bad, max(o.config.MaxBatchItems-1, 1)) {
		again := make([]string, len(part), len(part)+1)
		for i, at := range part {
			again[i] = texts[at]
		}
		got, err := o.request(ctx, append(again, knownGood))
		if err != nil {
			return nil, err
		}
		if lacksDirection(got[len(part)]) {
			return nil, o.at.Wrong("with %s", noDirection)
		}
		for i, at := range part {
			vectors[at] = got[i]
		}
	}
	return vectors, nil
}

func lacksDirection(v []float32) bool { return v == nil }

// lower makes size the length of the longest text that is sent whole, unless it is shorter already.
func (o *OpenAI) lower(size int) {
	for limit := o.limit.Load(); int64(size) < limit; limit = o.limit.Load() {
		if o.limit.CompareAndSwap(limit, int64(max(size, 1))) {
			return
		}
	}
}

// embedTexts returns the vectors of texts, each text of more than limit tokens as the mean of its parts'; nil where
// there is no direction.
func (o *OpenAI) embedTexts(ctx context.Context, texts []string, limit int) ([][]float32, error) {
	var parts []string
	ends := make([]int, len(texts))
	for i, text := range texts {
		parts = appendParts(parts, text, limit)
		ends[i] = len(parts)
	}
	var vectors [][]float32
	for _, batch := range batches(parts, o.config.MaxBatchItems, o.config.MaxBatchTokens, tokens) {
		got, err := o.directed(ctx, batch)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, got...)
	}
	whole, start := make([][]float32, len(texts)), 0
	for i, end := range ends {
		whole[i], start = mean(parts[start:end], vectors[start:end]), end
	}
	return whole, nil
}

// appendParts cuts text in halves until each has at most limit tokens or is too short to be cut, and leaves out blank
// ones.
func appendParts(parts []string, text string, limit int) []string {
	if tokens(text) <= limit || utf8.RuneCountInString(text) <= minCutRunes {
		if strings.TrimSpace(text) == "" {
			return parts
		}
		return append(parts, text)
	}
	middle := middleOf(text)
	return appendParts(appendParts(parts, text[:middle], limit), text[middle:], limit)
}

// middleOf returns where to cut a text in two: after the last white space in the sixteenth before its middle, else
// between two characters there.
func middleOf(text string) int {
	middle, reach := len(text)/2, len(text)/16
	for range utf8.UTFMax - 1 {
		if !utf8.RuneStart(text[middle]) {
			middle--
		}
	}
	before := strings.LastIndexFunc(text[middle-reach:middle], unicode.IsSpace)
	if before < 0 {
		return middle
	}
	at := middle - reach + before
	_, size := utf8.DecodeRuneInString(text[at:])
	return at + size
}

// mean returns the direction of the vectors' sum, each counted by the length of its text; nil if one of them has none.
func mean(texts []string, vectors [][]float32) []float32 {
	if len(vectors) == 1 {
		return vectors[0]
	}
	var sum []float32
	for i, v := range vectors {
		if v == nil {
			return nil
		}
		if sum == nil {
			sum = make([]float32, len(v))
		}
		for k, x := range v {
			sum[k] += float32(len(texts[i])) * x
		}
	}
	return embed.Normalize(sum)
}
