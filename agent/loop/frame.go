package loop

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
)

// frameFault is a refusal of what a prompt has outside of its messages.
type frameFault struct {
	*model.Fault
	place string
}

// Unwrap returns the fault.
func (f *frameFault) Unwrap() error { return f.Fault }

// Place says where what is refused stands.
func (f *frameFault) Place() string {
	return "The provider refuses the prompt without the conversation's messages, too. What it refuses stands in " +
		f.place + ". Change that. All messages stay in the model's view"
}

// The parts of a prompt that may be refused whatever its messages say.
const (
	openFiles = "the texts of the agent's open files"
	ownMemory = "the agent's memory: its memory blocks, the index of its memory files or its working memory"
	elsewhere = "the agent's system prompt, its tools or its folders, unless the provider refuses all prompts"
)

// harmless is a message that no provider refuses.
const harmless = "Hello"

// frame finds out whether the provider refuses a prompt whatever its messages say. If it refuses the texts of open
// files, the run's further prompts are without them. A failure that does not say why may be of these only.
func (p *probe) frame(ctx context.Context, f *model.Fault) (b blamed, err error) {
	at := p.at
	at.Trial.Message = harmless
	whole, filesLess, err := p.frames(ctx, at)
	hasFiles := !bytes.Equal(whole, filesLess)
	if err != nil || f.Kind != model.Content && !hasFiles {
		return b, err
	}
	if works, err := p.ask(ctx, whole); err != nil || works || f.Kind == model.Content && !p.refused {
		return b, err
	}
	if hasFiles {
		works, err := p.ask(ctx, filesLess)
		if err != nil || works {
			p.withoutFiles = works
			return blamed{place: openFiles, askAgain: works && !p.isShown()}, err
		}
	}
	if f.Kind != model.Content {
		return b, nil
	}
	at.WithoutFiles, at.Trial.WithoutMemory = true, true
	prompt, err := p.Agents.Preview(ctx, p.org, at, nil)
	if err != nil {
		return b, err
	}
	works, err := p.ask(ctx, prompt)
	if works {
		return blamed{place: ownMemory}, err
	}
	return blamed{place: elsewhere}, err
}

// frames returns a prompt with the texts of open files, if it is to have them, and without.
func (p *probe) frames(ctx context.Context, at agent.PromptTarget) (whole, filesLess json.RawMessage, err error) {
	if whole, err = p.Agents.Preview(ctx, p.org, at, nil); err != nil {
		return nil, nil, err
	}
	at.WithoutFiles = true
	filesLess, err = p.Agents.Preview(ctx, p.org, at, nil)
	return whole, filesLess, err
}
