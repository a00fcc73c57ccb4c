"""Weights that arrive with a request."""

import io

import torch
from flask import Flask, request

app = Flask(__name__)
net = torch.nn.Linear(4, 4)


@app.route("/weights", methods=["POST"])
def put():
    data = io.BytesIO(request.files["weights"].read())
    state = torch.load(data, weights_only=False)  # expect: pickle-trusted
    net.load_state_dict(state)
    return "ok"
