package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/provider"
)

// maxAnswerBytes is enough: 64 vectors of 4,000 numbers as JSON are 6 MB.
const maxAnswerBytes = 8 << 20

// MaxDimension is the largest dimension of a halfvec that pgvector indexes.
const MaxDimension = 4_000

// Config is the address and the settings of a server with OpenAI's POST /embeddings: OpenAI, Ollama, vLLM,
// text-embeddings-inference, llama.cpp and others.
type Config struct {
	BaseURL    string // the URL before /embeddings; empty: OpenAI's
	APIKey     string // empty: the server needs none
	Model      string
	Dimensions int  // dimensions to ask for; 0: the model decides, as it must if it has only one
	Base64     bool // ask for numbers as base64, even if Probe did not find that the provider can

	HTTP           *http.Client  // nil: a client of its own; no redirects are followed, and its timeout is not used
	MaxBatchItems  int           // texts in a request; 0: 64
	MaxBatchTokens int           // estimated tokens in a request; 0: 8,000
	MaxInputTokens int           // estimated tokens in a text, beyond which its parts are averaged; 0: 8,000
	Attempts       int           // most attempts of a request; 0: 4
	Timeout        time.Duration // time limit of one attempt; 0: 30 s
	FirstPause     time.Duration // before the second attempt, doubled before each further one; 0: 500 ms
}

// maxRequests limits the requests of all callers at a time; orgRequests limits those of one organization.
const (
	maxRequests = orgRequests + 1
	orgRequests = 4
)

// RefusedError is a text that the provider does not embed, not even alone.
type RefusedError struct {
	ID     int64  // ID of the Item
	Reason string // for organizations: without the provider's words
	Detail string // for the operator
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the embedding provider refuses text %d: %s", e.ID, e.Detail)
}

// Refusals returns the refused texts in an Embedder's error.
func Refusals(err error) []*RefusedError {
	if one, ok := err.(*RefusedError); ok { //nolint:errorlint // the tree is walked here
		return []*RefusedError{one}
	}
	tree, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // likewise
	if !ok {
		return nil
	}
	var all []*RefusedError
	for _, err := range tree.Unwrap() {
		all = append(all, Refusals(err)...)
	}
	return all
}

// LaterError is a failure after which the provider asks for a pause.
type LaterError struct {
	After  time.Duration
	Reason error
}

func (e *LaterError) Error() string { return e.Reason.Error() }

// Unwrap returns the failure.
func (e *LaterError) Unwrap() error { return e.Reason }

// OpenAI is an Embedder that asks an OpenAI-compatible endpoint. It may be used from many goroutines.
type OpenAI struct {
	config    Config
	at        *provider.Endpoint
	client    *openai.Client
	slots     *db.Shares   // at most maxRequests
	dimension atomic.Int64 // of every vector; 0 until the first answer, unless configured
	limit     atomic.Int64 // estimated tokens of the longest text that is sent whole
	base64    atomic.Bool  // ask for numbers as base64
}

// NewOpenAI checks the configuration; it sends nothing. An error names the setting to change.
func NewOpenAI(c Config) (*OpenAI, error) {
	c.MaxBatchItems = cmp.Or(c.MaxBatchItems, 64)
	c.MaxBatchTokens = cmp.Or(c.MaxBatchTokens, 8_000)
	c.MaxInputTokens = cmp.Or(c.MaxInputTokens, 8_000)
	server := &provider.Endpoint{Kind: "embedding", Setting: "LOCI_EMBEDDING", Answers: "embeddings",
		BaseURL: c.BaseURL, APIKey: c.APIKey, Model: c.Model, HTTP: c.HTTP,
		Attempts: cmp.Or(c.Attempts, 4), Timeout: cmp.Or(c.Timeout, 30*time.Second), FirstPause: c.FirstPause,
		MaxAnswerBytes: maxAnswerBytes, Refuses: refuses}
	client, err := server.Client()
	if err != nil {
		return nil, err
	}
	if c.Dimensions < 0 || c.Dimensions > MaxDimension {
		return nil, fmt.Errorf("LOCI_EMBEDDING_DIMENSIONS is %d: it must lie between 1 and %d, "+
			"or be empty for the model's own", c.Dimensions, MaxDimension)
	}
	o := &OpenAI{config: c, at: server, client: client, slots: db.NewShares(maxRequests, maxRequests-orgRequests)}
	o.dimension.Store(int64(c.Dimensions))
	o.limit.Store(int64(c.MaxInputTokens))
	o.base64.Store(c.Base64)
	return o, nil
}

// Probe embeds one word and returns the dimension of the provider's vectors. An error says what to change: the
// dimension differs from the configured one (both are named) or exceeds MaxDimension, or the provider gives no valid
// answer. It is a *SettingError if asking again cannot help. If the provider gives the same vector as base64, it is
// asked for base64 from then on.
func (o *OpenAI) Probe(ctx context.Context) (dimension int, err error) {
	vectors, err := o.request(ctx, []string{knownGood})
	if err != nil {
		return 0, o.failure(err)
	}
	if vectors[0] == nil {
		return 0, o.at.Wrong("with %s", noDirection)
	}
	o.tryBase64(ctx, vectors[0])
	return len(vectors[0]), nil
}

// tryBase64 asks for the vector of Probe again, as base64. OpenAI, vLLM and others support base64, which is decoded
// much faster. Some providers ignore the request and answer with numbers.
func (o *OpenAI) tryBase64(ctx context.Context, known []float32) {
	if o.base64.Swap(true) {
		return
	}
	vectors, err := o.request(ctx, []string{knownGood})
	if err != nil || vectors[0] == nil || dot(known, vectors[0]) < 0.99 {
		o.base64.Store(false)
	}
}

// dot returns the inner product; for unit vectors it is the cosine.
func dot(a, b []float32) (sum float64) {
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// job is an item that is being embedded. Only the batch that has it writes to it.
type job struct {
	item    embed.Item
	values  []float32
	refused *refusal // why there are no values
}

// Embed implements embed.Embedder. Blank texts get neither a vector nor an error: they have nothing to find, and
// providers refuse them. A text that is too long for the provider is cut, and gets the mean of its parts' vectors,
// weighted with their lengths.
func (o *OpenAI) Embed(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	var jobs []*job
	for _, item := range items {
		if strings.TrimSpace(item.Text) != "" {
			jobs = append(jobs, &job{item: item})
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(orgRequests)
	for _, batch := range batches(jobs, o.config.MaxBatchItems, o.config.MaxBatchTokens, (*job).tokens) {
		group.Go(func() error { return o.batch(groupCtx, batch) })
	}
	if err := group.Wait(); err != nil {
		return nil, o.failure(err)
	}
	vectors, refused := make([]embed.Vector, 0, len(jobs)), []error(nil)
	for _, j := range jobs {
		if j.values != nil {
			vectors = append(vectors, embed.Vector{ID: j.item.ID, Values: j.values})
		} else {
			refused = append(refused, &RefusedError{ID: j.item.ID, Reason: j.refused.public, Detail: j.refused.reason})
		}
	}
	return vectors, errors.Join(refused...)
}

func (j *job) tokens() int { return tokens(j.item.Text) }

// request embeds texts with one request. It returns vectors of norm 1 in the order of the texts, or nil for a vector
// without direction. After a *refusal, and only then, sending less may help.
func (o *OpenAI) request(ctx context.Context, texts []string) ([][]float32, error) {
	org := db.OrgOf(ctx)
	if err := o.slots.Take(ctx, org, 1); err != nil {
		return nil, err
	}
	defer o.slots.Give(org, 1)
	ask := openai.EmbeddingRequestStrings{Input: texts, Model: openai.EmbeddingModel(o.config.Model),
		Dimensions: o.config.Dimensions}
	if o.base64.Load() {
		ask.EncodingFormat = openai.EmbeddingEncodingFormatBase64
	}
	var later time.Duration
	answer, err := o.client.CreateEmbeddings(provider.WithRetryAfter(ctx, &later), ask)
	if err != nil {
		if err = o.explain(ctx, err); later > 0 {
			err = &LaterError{After: later, Reason: err}
		}
		return nil, err
	}
	return o.check(answer.Data, len(texts))
}

// check puts the vectors of an answer to n texts in the order of the texts. It returns an error if it is not certain
// which vector belongs to which text.
func (o *OpenAI) check(data []openai.Embedding, n int) ([][]float32, error) {
	if len(data) != n {
		return nil, o.at.Wrong("with %d vectors to %d texts", len(data), n)
	}
	vectors, seen := make([][]float32, n), make([]bool, n)
	for _, d := range data {
		if d.Index < 0 || d.Index >= n {
			return nil, o.at.Wrong("with a vector for text %d of %d", d.Index, n)
		}
		if seen[d.Index] {
			return nil, o.at.Wrong("with two vectors for text %d of %d", d.Index, n)
		}
		if err := o.checkDimension(len(d.Embedding)); err != nil {
			return nil, err
		}
		seen[d.Index], vectors[d.Index] = true, embed.Normalize(d.Embedding)
	}
	return vectors, nil
}

// checkDimension returns an error unless got is the configured dimension, or else the dimension of the first vector
// that was seen.
func (o *OpenAI) checkDimension(got int) error {
	if got < 1 || got > MaxDimension {
		return provider.Told(provider.Settingf("the embedding model %s gives vectors of %d numbers, and Loci keeps 1 to %d: "+
			"choose another LOCI_EMBEDDING_MODEL, or set LOCI_EMBEDDING_DIMENSIONS if this one can give fewer",
			o.config.Model, got, MaxDimension), "the embedding model gives vectors of %d numbers", got)
	}
	o.dimension.CompareAndSwap(0, int64(got))
	want := int(o.dimension.Load())
	if got == want {
		return nil
	}
	if o.config.Dimensions != 0 {
		return provider.Told(provider.Settingf("the embedding model %s gives vectors of %d numbers, but "+
			"LOCI_EMBEDDING_DIMENSIONS is %d: set it to %d or leave it empty", o.config.Model, got, want, got),
			"the embedding model gives vectors of %d numbers, not of %d", got, want)
	}
	return o.at.Wrong("with a vector of %d numbers after ones of %d", got, want)
}
