package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// reembedCmd makes vectors with another model while the current ones are in use, and switches to them.
type reembedCmd struct {
	Status reembedStatusCmd `cmd:"" default:"withargs" help:"Say how far the vectors of the new model are."`
	Start  reembedStartCmd  `cmd:"" help:"Make the vectors of the model that the server's LOCI_EMBEDDING_NEXT* name."`
	Cancel reembedCancelCmd `cmd:"" help:"Make no more of them. Searches stay as they are."`
}

const (
	reembedPath   = "/v1/admin/reembedding"
	lookAtReembed = time.Second // between two reads of the progress
)

type reembedStatusCmd struct {
	remote
	asked
	Wait bool `help:"Wait until it is done, showing the progress."`
}

func (c reembedStatusCmd) Run(ctx context.Context, s streams) error {
	var p endpoint.ReembedProgress
	if err := c.get(ctx, reembedPath, &p); err != nil {
		return err
	}
	if c.Wait {
		return c.follow(ctx, s, c.JSON)
	}
	return printReembedding(s, p, c.JSON)
}

type reembedStartCmd struct {
	remote
	asked
	Detach bool `help:"Return at once; a server makes the vectors in any case."`
}

func (c reembedStartCmd) Run(ctx context.Context, s streams) error {
	var p endpoint.ReembedProgress
	if err := c.send(ctx, http.MethodPost, reembedPath, nil, &p); err != nil {
		return err
	}
	if c.Detach {
		return printReembedding(s, p, c.JSON)
	}
	return c.follow(ctx, s, c.JSON)
}

type reembedCancelCmd struct {
	remote
	asked
}

func (c reembedCancelCmd) Run(ctx context.Context, s streams) error {
	var p endpoint.ReembedProgress
	if err := c.send(ctx, http.MethodDelete, reembedPath, nil, &p); err != nil {
		return err
	}
	return printReembedding(s, p, c.JSON)
}

// follow shows the progress until it ends. If the server restarts meanwhile, follow asks again.
func (r remote) follow(ctx context.Context, s streams, asJSON bool) error {
	line := newProgressLine(s.err)
	defer line.end()
	for {
		var p endpoint.ReembedProgress
		err := r.get(ctx, reembedPath, &p)
		if _, refused := errors.AsType[*refusedRequest](err); refused || errors.Is(err, errNotLoci) {
			return err
		}
		switch {
		case err != nil:
			line.show(err.Error())
		case p.State != endpoint.Reembedding:
			line.end()
			return printReembedding(s, p, asJSON)
		default:
			line.show(reembeddingText(p))
		}
		if !db.Pause(ctx, lookAtReembed) {
			return ctx.Err()
		}
	}
}

func printReembedding(s streams, p endpoint.ReembedProgress, asJSON bool) error {
	if asJSON {
		return printJSON(s, p)
	}
	_, err := fmt.Fprintln(s.out, reembeddingText(p))
	return err
}

// reembeddingText describes the progress in a sentence.
func reembeddingText(p endpoint.ReembedProgress) string {
	switch p.State {
	case endpoint.NotReembedding:
		return "No vectors of another model were made. The settings LOCI_EMBEDDING_NEXT* of the server name the new " +
			"model; 'loci reembed start' begins."
	case endpoint.Switched:
		return fmt.Sprintf("Searches rank by %s, with %d numbers: %d vectors are made, %d texts were refused. Give its "+
			"settings to LOCI_EMBEDDING*, and remove LOCI_EMBEDDING_NEXT*, before the next start.", p.To, p.ToDim, p.Done,
			p.Refused)
	}
	state := "running"
	if p.State == endpoint.Cancelled {
		state = "cancelled"
	}
	total := ""
	if p.Total != nil {
		total = fmt.Sprintf(" of %d (%d %%)", *p.Total, 100*p.Done/max(*p.Total, 1))
	}
	text := fmt.Sprintf("%s to %s, with %d numbers: %s, %d%s texts. Searches rank by %s, with %d numbers.", p.From, p.To,
		p.ToDim, state, p.Done, total, p.From, p.FromDim)
	if p.Error != nil {
		text += " It waits: " + *p.Error
	}
	return text
}
