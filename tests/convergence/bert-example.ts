/** A config and a manifest as an older harness for a BERT training writes them. */
export const BERT_CONFIG: string = String.raw`
bert:
    directory: "applications/bert"
    executable:
        - "python3"
        - "bert.py"
    log_output: "stderr"
    log_parsing:
        step_num:
            regex: "Iteration:\\s+(\\d+)"
        epoch_num:
            regex: "Epoch:\\s+([\\d\\.]+)"
        loss:
            regex: "Loss\\s+\\(MLM\\s+NSP\\):\\s+([\\d\\.]+)\\s+([\\d\\.]+)"
            labels:
                - MLM
                - NSP
        accuracy:
            regex: "Accuracy\\s+\\(MLM\\s+NSP\\):\\s+([\\d\\.]+)\\s+([\\d\\.]+)"
            labels:
                - MLM
                - NSP
        model_save:
            regex: "Saving model to: ([^\\s+]+)"
    metrics:
        loss:
            margin: 0.2
            comparison: "<="
        accuracy:
            margin: 0.2
            comparison: ">="
    recording:
        steps_to_record_after_save: 3
    flags:
        common:
            log_steps:
                key: "--steps-per-log"
                value: 1
            config:
                key: "--config"
                value: "configs/demo.json"
        gather:
            checkpoint_output:
                set_in_script: true
                key: "--checkpoint-dir"
            misc:
                save_interval:
                    key: "--epochs-per-save"
                    value: 5
                run_for:
                    key: "--epochs"
                    value: 200
        run:
            checkpoint_input:
                key: "--onnx-checkpoint"
                set_in_script: true
            start_step:
                key: "--continue-training-from-epoch"
                set_in_script: true
            run_for:
                key: "--epochs"
                set_in_script: true
            misc:
                engine_cache:
                    key: "--engine-cache"
                    value: "cache"
                no_validation:
                    key: "--no-validation"
                    value: null
`

/** Indented by 4, as the older harness writes it. */
export const BERT_MANIFEST: string = `{
    "ckpt_logs": {
        "0": {
            "checkpoint": "ckpts/20-04-11-14-23-13/model_0.onnx",
            "start_step": 0,
            "results": {
                "0": {
                    "loss": {
                        "MLM": "9.742",
                        "NSP": "0.718"
                    },
                    "accuracy": {
                        "MLM": "0.000",
                        "NSP": "0.500"
                    }
                },
                "1": {
                    "loss": {
                        "MLM": "7.984",
                        "NSP": "0.704"
                    },
                    "accuracy": {
                        "MLM": "0.021",
                        "NSP": "0.531"
                    }
                }
            }
        },
        "4": {
            "checkpoint": "ckpts/20-04-11-14-23-13/model_4:5.onnx",
            "start_step": 4,
            "results": {
                "5": {
                    "loss": {
                        "MLM": "5.840",
                        "NSP": "0.625"
                    },
                    "accuracy": {
                        "MLM": "0.086",
                        "NSP": "0.594"
                    }
                }
            }
        }
    }
}
`

/** The log that leads to the manifest. */
export const BERT_LOG: string = `
2020-03-13 16:00:10 INFO Saving model to: /s/ckpts/20-04-11-14-23-13/model_0.onnx
2020-03-13 16:00:11 INFO Iteration:      0 Epoch:   0.00/200 Loss (MLM NSP): 9.742 0.718 Accuracy (MLM NSP): 0.000 0.500 Learning Rate: 0.00080
2020-03-13 16:00:12 INFO Iteration:      1 Epoch:   1.00/200 Loss (MLM NSP): 7.984 0.704 Accuracy (MLM NSP): 0.021 0.531 Learning Rate: 0.00080
2020-03-13 16:00:13 INFO Iteration:      4 Epoch:   4.00/200 Loss (MLM NSP): 6.312 0.645 Accuracy (MLM NSP): 0.068 0.656 Learning Rate: 0.00080
2020-03-13 16:00:13 INFO Saving model to: /s/ckpts/20-04-11-14-23-13/model_4:5.onnx
2020-03-13 16:00:14 INFO Iteration:      5 Epoch:   5.00/200 Loss (MLM NSP): 5.840 0.625 Accuracy (MLM NSP): 0.086 0.594 Learning Rate: 0.00080
`.trim()
