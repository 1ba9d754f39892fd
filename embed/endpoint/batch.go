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

// minCutRunes is the least length at which a refused text is cut.
const minCutRunes = 200

// knownGood is a text that every provider accepts.
const knownGood = "memory"

const noDirection = "a vector of zeros or of numbers that are not finite"

// tokens estimates how many tokens a text has, rather too many than too few: 3 ASCII characters are one, and every
// other character is one.
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

// batches cuts a list into parts with at most maxItems items and maxTokens tokens. An item with more tokens is alone.
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

// batch embeds jobs with one request. If the provider refuses it, each half is embedded on its own: one bad text among
// 32 costs 11 requests. An error means that the provider failed, not that a text is bad.
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

// alone embeds a text that was refused on its own. It refuses the text only if the provider refuses it again after
// accepting another text. It then tries the text cut in two. If the text is too long, it is cut in 4, 8, … parts, and
// later texts are cut before they are sent: small models take 512 tokens, and no endpoint tells its limit.
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
		size := tokens(text)/n*9/8 + 1 // the halves are not quite equal
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

// confirm returns an error unless the provider now embeds knownGood. A provider with a wrong setting refuses every
// text. It may also do so for a while, for example when it loads its model again.
func (o *OpenAI) confirm(ctx context.Context) error {
	vectors, err := o.request(ctx, []string{knownGood})
	if err == nil && vectors[0] == nil {
		return o.at.Wrong("with %s", noDirection)
	}
	return err
}

// directed embeds texts with one request. If some vectors have no direction, it asks again for their texts, together
// with knownGood. A text gets nil if it still has no direction but knownGood has one. An error means that the provider
// gives no text a direction.
func (o *OpenAI) directed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := o.request(ctx, texts)
	if err != nil || !slices.ContainsFunc(vectors, lacksDirection) {
		return vectors, err
	}
	var bad []int // indices of texts
	for i, v := range vectors {
		if lacksDirection(v) {
			bad = append(bad, i)
		}
	}
	for part := range slices.Chunk(bad, max(o.config.MaxBatchItems-1, 1)) {
		again := make([]string, len(part), len(part)+1)
		for i, index := range part {
			again[i] = texts[index]
		}
		got, err := o.request(ctx, append(again, knownGood))
		if err != nil {
			return nil, err
		}
		if lacksDirection(got[len(part)]) {
			return nil, o.at.Wrong("with %s", noDirection)
		}
		for i, index := range part {
			vectors[index] = got[i]
		}
	}
	return vectors, nil
}

func lacksDirection(v []float32) bool { return v == nil }

// lower reduces the length of the longest text that is sent whole to size, unless it is smaller already.
func (o *OpenAI) lower(size int) {
	for limit := o.limit.Load(); int64(size) < limit; limit = o.limit.Load() {
		if o.limit.CompareAndSwap(limit, int64(max(size, 1))) {
			return
		}
	}
}

// embedTexts returns the vectors of texts, or nil for a vector without direction. A text of more than limit tokens gets
// the mean of its parts' vectors.
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

// appendParts halves a text until each part has at most limit tokens or is too short to cut. It leaves out blank parts.
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

// middleOf returns where to cut a text in two: after the last white space in the sixteenth of the text before its
// middle. Without white space there, it cuts between two characters at the middle.
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
	space := middle - reach + before
	_, size := utf8.DecodeRuneInString(text[space:])
	return space + size
}

// mean returns the direction of the vectors' sum, each weighted with the length of its text. It returns nil if one of
// them has no direction.
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
