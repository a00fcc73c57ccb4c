import numpy as np
from transformers import EvalPrediction


def macro_f1(predicted: np.ndarray, labels: np.ndarray, num_labels: int) -> float:
    scores = []
    for label in range(num_labels):
        hits = np.sum((predicted == label) & (labels == label))
        mentioned = np.sum(predicted == label) + np.sum(labels == label)
        scores.append(2.0 * hits / max(1, mentioned))
    return float(np.mean(scores))


def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
    logits, labels = prediction.predictions, prediction.label_ids
    predicted = logits.argmax(axis=-1)
    return {
        "accuracy": float((predicted == labels).mean()),
        "macro_f1": macro_f1(predicted, labels, logits.shape[-1]),
    }
