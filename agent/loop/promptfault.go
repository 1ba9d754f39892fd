package loop

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/agent/loop/model"
)

// promptFault is a fault caused by a part of the prompt outside of its messages.
type promptFault struct {
	*model.Fault
	place string
}

func (f *promptFault) Unwrap() error { return f.Fault }

// Place says which part of the prompt is refused.
func (f *promptFault) Place() string {
	if f.Kind != model.Content {
		return f.place
	}
	return "The provider refuses the prompt without the conversation's messages, too. What it refuses stands in " +
		f.place + ". Change that. All messages stay in the model's view"
}

// Parts of a prompt that a provider may refuse whatever the messages say.
const (
	ofFiles   = "the texts of the agent's open files"
	ofMemory  = "the agent's memory: its memory blocks, the index of its memory files or its working memory"
	elsewhere = "the agent's system prompt, its tools or its folders, unless the provider refuses all prompts"
)

// Explanations of a failure that occurs in each turn without a reason.
const (
	failsOfMemory = "It fails for a prompt without the conversation's messages, too, and answers one without " + ofMemory +
		". Change that. All messages stay in the model's view"
	failsUnclear = "It fails in each turn, and for a prompt of one harmless message without the agent's memory, too: it " +
		"is down, or fails for the agent's system prompt, its tools or its folders. Loci cannot tell which"
)

// harmless is a message that no provider refuses.
const harmless = "Hello"

// findPromptFault finds out whether the provider refuses a prompt whatever its messages say. If it refuses the texts of
// open files, the run's further prompts leave these out. A failure without a reason may be caused by these texts or, if
// it repeats, by the memory.
func (p *probe) findPromptFault(ctx context.Context, f *model.Fault, repeats bool) (b failureCause, err error) {
	prompts, err := p.otherPrompts(ctx)
	refuses, hasFiles := f.Kind == model.Content, !bytes.Equal(prompts.whole, prompts.filesLess)
	if err != nil || !refuses && !hasFiles && !repeats {
		return b, err
	}
	if !refuses && repeats { // first exclude a provider that fails for every prompt
		if works, err := p.ask(ctx, prompts.memoryLess); err != nil || !works {
			return failureCause{place: failsUnclear}, err
		}
	}
	if works, err := p.ask(ctx, prompts.whole); err != nil || works || refuses && !p.refused {
		return b, err
	}
	if hasFiles {
		works, err := p.ask(ctx, prompts.filesLess)
		if err == nil && works {
			err = p.refuseFiles(ctx)
		}
		if err != nil || works {
			return failureCause{place: ofFiles, askAgain: works && !p.isShown()}, err
		}
	}
	switch {
	case refuses:
		works, err := p.ask(ctx, prompts.memoryLess)
		if works {
			return failureCause{place: ofMemory}, err
		}
		return failureCause{place: elsewhere}, err
	case repeats:
		return failureCause{place: failsOfMemory}, nil
	}
	return b, nil
}

// otherPrompts are prompts with a harmless message: one with everything else, one without the texts of open files, and
// one without these and the memory.
type otherPrompts struct{ whole, filesLess, memoryLess json.RawMessage }

func (p *probe) otherPrompts(ctx context.Context) (prompts otherPrompts, err error) {
	target := p.at
	target.Trial.Message = harmless
	for _, f := range []struct {
		prompt                      *json.RawMessage
		withoutFiles, withoutMemory bool
	}{{&prompts.whole, target.WithoutFiles, false}, {&prompts.filesLess, true, false}, {&prompts.memoryLess, true, true}} {
		target.WithoutFiles, target.Trial.WithoutMemory = f.withoutFiles, f.withoutMemory
		if *f.prompt, err = p.Agents.Preview(ctx, p.org, target, nil); err != nil {
			return prompts, err
		}
	}
	return prompts, nil
}
