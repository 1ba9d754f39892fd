package embed

import (
	"context"
	"errors"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minCutRunes is how long a text must be that cutting it is worth a try where the provider refuses it.
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

// batches cuts a list into stretches of at most maxItems with at most maxTokens together; one that has more is alone.
func batches[T any](all []T, maxItems, maxTokens int, tokens func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		start, sum := 0, 0
		for i, one := range all {
			n := tokens(one)
			if i > start && (i-start == maxItems || sum+n > maxTokens) {
				if !yield(all[start:i]) {
					return
				}
				start, sum = i, 0
			}
			sum += n
		}
		if start < len(all) {
			yield(all[start:])
		}
	}
}

// batch embeds jobs by one request, and where the provider refuses that, each half on its own: one bad text among 32
// costs 11 requests. An error means that the provider failed, not a text.
func (o *OpenAI) batch(ctx context.Context, jobs []*job) error {
	texts := make([]string, len(jobs))
	for i, j := range jobs {
		texts[i] = j.item.Text
	}
	vectors, err := o.embedTexts(ctx, texts, int(o.limit.Load()))
	if err == nil {
		for i, j := range jobs {
			j.settle(vectors[i])
		}
		return nil
	}
	var no *refusal
	if !errors.As(err, &no) {
		return err
	}
	if len(jobs) == 1 {
		return o.alone(ctx, jobs[0], no)
	}
	half := len(jobs) / 2
	if err := o.batch(ctx, jobs[:half]); err != nil {
		return err
	}
	return o.batch(ctx, jobs[half:])
}

func (j *job) settle(values []float32) {
	j.values = values
	if values == nil {
		j.refused = "the provider answered with " + noDirection
	}
}

// alone embeds a text that was refused on its own. Cut in two it may pass; if it is refused for its length, it is cut
// in 4, 8, … and what comes later is cut before it is sent, for small models take 512 tokens and no endpoint tells.
func (o *OpenAI) alone(ctx context.Context, j *job, no *refusal) error {
	if err := o.confirm(ctx); err != nil {
		return err
	}
	j.refused = no.reason
	text := j.item.Text
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
		sent = longest(appendParts(nil, text, size))
	}
	return nil
}

// longest returns the tokens of the longest text.
func longest(texts []string) int {
	most := 0
	for _, text := range texts {
		most = max(most, tokens(text))
	}
	return most
}

// confirm tells a provider that refuses one text from one that is set up wrongly and refuses all.
func (o *OpenAI) confirm(ctx context.Context) error {
	if o.worked.Load() {
		return nil
	}
	_, err := o.request(ctx, []string{knownGood})
	return err
}

// lower makes size the longest text that is sent whole, if it is shorter than the longest so far.
func (o *OpenAI) lower(size int) {
	for {
		limit := o.limit.Load()
		if int64(size) >= limit || o.limit.CompareAndSwap(limit, int64(max(size, 1))) {
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
	for batch := range batches(parts, o.config.MaxBatchItems, o.config.MaxBatchTokens, tokens) {
		got, err := o.request(ctx, batch)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, got...)
	}
	whole := make([][]float32, len(texts))
	start := 0
	for i, end := range ends {
		whole[i] = mean(parts[start:end], vectors[start:end])
		start = end
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
	return Normalize(sum)
}
