package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/server/rest"
)

// embeddingTimeout is long enough for a slow processor to embed a whole request.
const embeddingTimeout = 5 * time.Minute

func (s *Server) embeddingRoutes(a *rest.API) {
	rest.Post(a.For(rest.Read), "/v1/embeddings",
		"create_embeddings: Make the vectors of texts. In OpenAI's form, by the model that searches here rank by. Nothing "+
			"is stored. A text that the model is not made for is refused.",
		s.createEmbeddings, rest.Own, rest.Slow(embeddingTimeout))
	rest.Get(a.For(rest.Read), "/v1/embeddings/progress",
		"get_embedding_progress: Say how many texts wait for their vectors. And how long this server takes for them.",
		s.embeddingProgress, rest.Own)
}

// EmbeddingProgress says how many texts of an organization have vectors, and how many wait for one.
type EmbeddingProgress struct {
	Model     string `json:"model" doc:"That makes the vectors; empty if none does."`
	Dimension int    `json:"dimension" doc:"How many numbers a vector has; 0 without a model."`
	endpoint.Backlog
	SecondsLeft *int64           `json:"seconds_left" doc:"That this server takes for what waits, at the pace of the last texts; null if it is not known."` //nolint:lll // a tag is one line
	Memories    []MemoryProgress `json:"memories" doc:"The same counts of each kind of memory."`
	Problem     *string          `json:"problem" doc:"Why texts get no vectors now; null if they get them."`
}

// MemoryProgress counts the texts of one kind of memory.
type MemoryProgress struct {
	Memory string `json:"memory" enum:"messages,passages,memory_files,files" doc:"The kind of memory."`
	endpoint.Backlog
}

func (s *Server) embeddingProgress(ctx context.Context, _ *struct{}) (p EmbeddingProgress, err error) {
	space, ok := s.Endpoint.Space()
	p.Model, p.Dimension, p.Memories = space.Model, space.Dimension, []MemoryProgress{}
	if problem := s.Endpoint.Problem(); problem != "" {
		p.Problem = &problem
	}
	if !ok {
		return p, nil
	}
	for _, kind := range []struct {
		memory string
		count  func(context.Context, db.Org) (endpoint.Backlog, error)
	}{{"messages", s.Recall.Backlog}, {"passages", s.Archival.Backlog}, {"memory_files", s.MemoryFiles.Backlog},
		{"files", s.Files.Backlog}} {
		backlog, err := kind.count(ctx, rest.Org(ctx))
		if err != nil {
			return p, err
		}
		p.Memories = append(p.Memories, MemoryProgress{kind.memory, backlog})
		p.Add(backlog)
	}
	if duration, known := s.Endpoint.TimeLeft(p.Waiting); known {
		p.SecondsLeft = new(int64(duration.Seconds()))
	}
	return p, nil
}

// EmbeddingInput is one text or several. texts is nil if the request sent tokens.
type EmbeddingInput struct{ texts []string }

// UnmarshalJSON implements json.Unmarshaler.
func (i *EmbeddingInput) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		i.texts = []string{""}
		return json.Unmarshal(raw, &i.texts[0])
	}
	if json.Unmarshal(raw, &i.texts) != nil {
		i.texts = nil // these are tokens, which the schema accepts
	}
	return nil
}

// Schema implements huma.SchemaProvider. It accepts tokens, as OpenAI's schema does, so that the handler can refuse
// them with a better explanation.
func (EmbeddingInput) Schema(r rest.Registry) *rest.Schema {
	schema := rest.OneOf(r, reflect.TypeFor[string](), reflect.TypeFor[[]string]())
	for _, tokens := range []reflect.Type{reflect.TypeFor[[]float64](), reflect.TypeFor[[][]float64]()} {
		schema.OneOf = append(schema.OneOf, r.Schema(tokens, true, ""))
	}
	schema.OneOf[2].MinItems, schema.OneOf[3].MinItems = new(1), new(1) // an empty list counts as a list of texts
	return schema
}

// NewEmbeddings is a request for vectors.
type NewEmbeddings struct {
	Input EmbeddingInput `json:"input" doc:"One text, or a list of at most 2,048 with 1,000,000 bytes together. Arrays of tokens are refused."` //nolint:lll // a tag is one line

	Model      rest.Opt[string] `json:"model,omitzero" doc:"The model that texts are embedded with here, with or without its provider; absent for that one."`              //nolint:lll // a tag is one line
	Format     rest.Opt[string] `json:"encoding_format,omitzero" enum:"float,base64" doc:"How numbers are written: as JSON, or as base64 of little-endian 32-bit floats."` //nolint:lll // a tag is one line
	Dimensions rest.Opt[int]    `json:"dimensions,omitzero" minimum:"1" maximum:"16000" doc:"The model's own."`
	User       rest.Opt[string] `json:"user,omitzero" doc:"Not used."`
}

// Embeddings are the vectors of texts.
type Embeddings struct {
	Object string         `json:"object" enum:"list" doc:"Always list."`
	Data   []Embedding    `json:"data" doc:"In the order of the texts."`
	Model  string         `json:"model" doc:"The model that made the vectors."`
	Usage  EmbeddingUsage `json:"usage" doc:"What it took."`
}

// Embedding is the vector of one text.
type Embedding struct {
	Object string         `json:"object" enum:"embedding" doc:"Always embedding."`
	Index  int            `json:"index" doc:"The text's, from 0."`
	Values EmbeddingValue `json:"embedding" doc:"Its numbers, of norm 1."`
}

// EmbeddingUsage counts tokens.
type EmbeddingUsage struct {
	Prompt int `json:"prompt_tokens" doc:"Of all texts, estimated."`
	Total  int `json:"total_tokens" doc:"The same."`
}

// EmbeddingValue is a vector, written in JSON as numbers or as base64.
type EmbeddingValue struct {
	numbers []float32
	base64  bool
}

// MarshalJSON implements json.Marshaler.
func (v EmbeddingValue) MarshalJSON() ([]byte, error) {
	if !v.base64 {
		return json.Marshal(v.numbers)
	}
	raw := make([]byte, 0, 4*len(v.numbers))
	for _, x := range v.numbers {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(raw))
}

// Schema implements huma.SchemaProvider.
func (EmbeddingValue) Schema(r rest.Registry) *rest.Schema {
	return rest.OneOf(r, reflect.TypeFor[[]float32](), reflect.TypeFor[string]())
}

func (s *Server) createEmbeddings(ctx context.Context, input *struct{ Body NewEmbeddings }) (Embeddings, error) {
	b := input.Body
	if b.Input.texts == nil {
		return Embeddings{}, rest.Unprocessable("body.input", "tokens are a model's own: send a text, or a list of texts")
	}
	space, ok := s.Endpoint.Space()
	if !ok {
		return Embeddings{}, noEmbeddings("")
	}
	if name := b.Model.Value; name != "" && name != space.Model && !strings.HasSuffix(name, "/"+space.Model) {
		return Embeddings{}, rest.Unprocessable("body.model", fmt.Sprintf("this server embeds with %s, and not with %s",
			space.Model, name))
	}
	if n := b.Dimensions; n.Set && !n.Null && n.Value != space.Dimension {
		return Embeddings{}, rest.Unprocessable("body.dimensions", fmt.Sprintf("vectors of %s have %d numbers, and not %d",
			space.Model, space.Dimension, n.Value))
	}
	vectors, err := s.Endpoint.Make(ctx, b.Input.texts)
	if errors.Is(err, endpoint.ErrNoVectors) {
		return Embeddings{}, noEmbeddings(err.Error())
	} else if err != nil {
		return Embeddings{}, err
	}
	answer := Embeddings{Object: "list", Model: vectors.Model, Usage: EmbeddingUsage{vectors.Tokens, vectors.Tokens}}
	for i, v := range vectors.Vectors {
		answer.Data = append(answer.Data, Embedding{"embedding", i, EmbeddingValue{v, b.Format.Value == "base64"}})
	}
	return answer, nil
}

// noEmbeddings is the error while there are no vectors. why may be empty.
func noEmbeddings(why string) error {
	return rest.NoModel(cmp.Or(why, "No embedding model is in use: the operator sees why with 'loci doctor'"))
}
