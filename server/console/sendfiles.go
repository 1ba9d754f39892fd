package console

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
)

// sendFiles uploads the files of a form, one after the other, for browsers without JavaScript. It stops at the first
// that the API refuses; those before it are stored.
func sendFiles(v *visit) error {
	if _, err := v.folder(); err != nil {
		return err
	}
	if !v.MayWrite() {
		return &apiError{Status: http.StatusForbidden, Detail: "Your key may only read. Sign in with one that has write."}
	}
	if v.parts == nil { // the form's value came in the header
		var err error
		if v.parts, err = v.r.MultipartReader(); err != nil {
			return &apiError{Status: http.StatusBadRequest, Detail: "This is no form with files: " + err.Error()}
		}
	}
	sent := 0
	for {
		part, err := v.parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &apiError{Status: http.StatusBadRequest, Detail: "The form ended early: " + err.Error()}
		}
		if part.FileName() == "" { // a field for files in which none was chosen
			continue
		}
		if err := v.sendFile(part); err != nil {
			refused, ok := errors.AsType[*apiError](err)
			if !ok {
				return err
			}
			stored := ""
			if sent > 0 {
				stored = " " + plural(sent, "file", "files") + " before it are stored."
			}
			return &apiError{refused.Status, part.FileName() + ": " + refused.Detail + stored, refused.Code}
		}
		sent++
	}
	if sent == 0 {
		return &apiError{Status: http.StatusUnprocessableEntity, Detail: "No file was chosen. Choose at least one."}
	}
	return v.done(base+"folders/"+v.id("folder"), "uploaded")
}

// sendFile hands a file of a form to the API as it comes.
func (v *visit) sendFile(part *multipart.Part) error {
	body, to := io.Pipe()
	form := multipart.NewWriter(to)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		into, err := form.CreateFormFile("file", part.FileName())
		if err == nil {
			_, err = io.Copy(into, part)
		}
		if err == nil {
			err = form.Close()
		}
		to.CloseWithError(err)
	}()
	r := v.request(http.MethodPost, "/v1/folders/"+v.id("folder")+"/upload", body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.ContentLength = -1
	answer := &recorder{header: http.Header{}}
	v.console.api.ServeHTTP(answer, r)
	_ = body.CloseWithError(fmt.Errorf("the upload of %s has ended", part.FileName())) // it always returns nil
	<-copied
	return answer.err()
}
